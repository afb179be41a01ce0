# `make demo`, `make test`, `make docs` and, while you work, `make quick`. Each sets itself up in .venv and needs only Python, make and a C compiler.

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick explore published lint hooks docs lock plotly clean python compiler packages

demo: $(VENV)/installed compiler
	$(BIN)/stallmark run demo

test: $(VENV)/installed-dev compiler packages lint
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

# What starts no server, browser or compiler, and tries not too many cases: about a minute on two idle cores.
quick: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not server and not thorough" --hypothesis-profile=quick

# The property tests with 300 new examples each instead of 25 that are always the same: minutes.
explore: $(VENV)/installed-dev compiler packages
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -m hypothesis --hypothesis-profile=explore

# Six published experiments on emulated arrays, 90 minutes in all: records in build/published, then tables and charts of
# docs/published-experiments.md. ONLY="e1 e6" makes some of them.
published: $(VENV)/installed-dev compiler packages
	$(BIN)/python -m benchmarks.published build/published --page docs $(if $(ONLY),--only $(ONLY))

lint: $(VENV)/installed-dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The hook that reads the messages of commits (CONTRIBUTING.md).
hooks:
	git config core.hooksPath .githooks

# The documentation as a site in build/site, and its reference pages made anew.
docs: $(VENV)/installed-dev
	$(BIN)/stallmark schema --markdown > docs/scenario-reference.md
	$(BIN)/stallmark schema --record --markdown > docs/data-format.md
	$(BIN)/stallmark schema --metrics > docs/metrics.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html; with search: $(BIN)/python -m http.server --directory build/site"

# Python compiles what it imports, once: to compile all of it takes longer than the rest of the installation.
$(VENV)/installed: requirements.lock pyproject.toml | python
	@echo "Installing Stallmark into $(VENV) (about a minute) …"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "Python cannot make a virtual environment: apt-get install python3-venv, then try again."; exit 1; }
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.lock
	@echo "Installing what the tests need …"
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements-dev.lock
	@touch $@

python:
	@test -n "$(PYTHON)" || { echo "Stallmark needs Python 3.11 or later: apt-get install python3 python3-venv."; exit 1; }

compiler:
	@command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || \
		{ echo "The emulated disk needs a C compiler: apt-get install gcc libc6-dev."; exit 1; }

# Microsoft's own parser of T-SQL, and the OpenSSL 1.1 that it wants: of wheels that are unpacked, not installed.
PARSER := $(VENV)/tsql-parser
UNPACK := $(BIN)/pip install --quiet --retries 1 --no-deps --no-compile --require-hashes --only-binary :all: \
	--platform manylinux1_x86_64 --platform manylinux2014_x86_64 --python-version 3.11

# Tests of pages, raw storage, connection poolers and SQL Server's part skip, and say so, where this cannot install what
# they need.
packages:
	@wanted=; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || wanted=" chromium"; \
	command -v fio >/dev/null || wanted="$$wanted fio"; \
	PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || wanted="$$wanted pgbouncer"; \
	$(BIN)/python -c 'import pyodbc' 2>/dev/null || wanted="$$wanted libodbc2 libgssapi-krb5-2"; \
	test -z "$$wanted" || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Installing$$wanted for the tests …" && \
		apt-get update -qq && apt-get install -y -qq $$wanted >/dev/null; } || \
		echo "No$$wanted here and no right to install it: some tests will skip."
	@test -e $(PARSER)/psycopg2_binary.libs/libssl.so.1.1 || { echo "Unpacking Microsoft's T-SQL parser for the tests …" && \
		test "$$(uname -sm)" = "Linux x86_64" && $(UNPACK) --target $(PARSER) -r tests/support/tsql/parser.lock && \
		cd $(PARSER)/psycopg2_binary.libs && ln -sf libssl-*.so.1.1* libssl.so.1.1; } || \
		echo "It cannot be had here: the tests that ask it are left out."

# The locks hold for Linux, macOS and Windows and every Python from 3.11.
lock: $(VENV)/installed-dev
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra build pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra build --extra dev \
		-c requirements.lock pyproject.toml -o requirements-dev.lock

# The part of Plotly's script that pages need, of the release that is installed.
plotly: $(VENV)/installed-dev
	@version=$$($(BIN)/python -c "from plotly.offline import get_plotlyjs_version; print(get_plotlyjs_version())") && \
		cd build && npm pack --silent plotly.js-basic-dist-min@$$version && \
		tar xzf plotly.js-basic-dist-min-$$version.tgz -O package/plotly-basic.min.js \
		> ../src/stallmark/report/templates/plotly-basic.min.js

clean:
	rm -rf $(VENV) .stallmark
