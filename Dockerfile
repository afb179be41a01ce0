# Stallmark without a C compiler: drives a server by URL, and the embedded PostgreSQL on real disks.
#
#   docker build -t stallmark .
#   docker run --rm -e SQLCMDPASSWORD -v "$PWD:/work" stallmark doctor --server 'mssql://sa@db.example/bank'

FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements.lock requirements-dev.lock ./
# The versions are those of the locks; the second lock is only a list of them, because most of it is for the tests.
RUN python -m venv --without-pip /opt/stallmark \
    && pip --python /opt/stallmark install --no-cache-dir --require-hashes -r requirements.lock \
    && sed '/--hash=/d; s/ \\$//' requirements-dev.lock > versions.txt \
    && pip --python /opt/stallmark install --no-cache-dir -c versions.txt pyodbc mssql-python mssql-python-odbc
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY schema schema
COPY loaders loaders
COPY transactions transactions
COPY driver driver
COPY scenarios scenarios
RUN pip --python /opt/stallmark install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
# What Microsoft's ODBC driver loads: the driver manager and Kerberos. Debian's security updates are wanted, not a pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libodbc2 libgssapi-krb5-2 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10000 --create-home stallmark \
    && install -d -o stallmark /work
COPY --from=build /opt/stallmark /opt/stallmark
# What the server is to be given back must outlive the container: in the folder that is mounted.
ENV PATH=/opt/stallmark/bin:$PATH STALLMARK_STATE=/work/.state
USER 10000
WORKDIR /work
ENTRYPOINT ["stallmark"]
CMD ["--help"]
