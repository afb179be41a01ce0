#!/usr/bin/env bash
# Spark counts 0.01 MB read for 16 MB of Parquet, and 0.08 for 9 MB of ORC; of the same rows as CSV it counts each byte.
# bytesRead of a task, "Input" of its pages and of what listens to its events, described as bytes read from storage, is
# what Hadoop's file system counted in the task's thread. The formats of columns now have the ranges of a row group or
# stripe read at once, by a vectored read, Parquet by default from Spark 4.1 on; and Hadoop's class for files that are
# local or mounted counts nothing in that: what is left are footers. So a scan of one column looks like one of all, and
# a gigabyte of Parquet like a megabyte of CSV; bytes per query and MB/s of a stage fall to a thousandth with an update
# that changes no read; and a job that waits for its disk seems to have everything in a cache. Records are right, and
# with parquet.hadoop.vectored.io.enabled=false so are Parquet's bytes.
#
# Each query is run twice and the second counted. What it read is from the system, as rchar of the process.
# Run with spark-sql_2.13 4.2.0 of Maven Central (Hadoop 3.5.0, Parquet 1.17.0, ORC 2.3.0), on Debian 12, 2026-11-30:
#   CSV: 20.4 MB read, Spark's bytesRead 20.23 MB
#   Parquet: 16.1 MB read, Spark's bytesRead 0.01 MB
#   Parquet, one column of three: 2.6 MB read, Spark's bytesRead 0.01 MB
#   Parquet, not vectored: 16.1 MB read, Spark's bytesRead 15.87 MB
#   Parquet, not vectored, one column of three: 2.7 MB read, Spark's bytesRead 2.53 MB
#   ORC: 9.4 MB read, Spark's bytesRead 0.08 MB
# Source: RawLocalFileSystem of Hadoop 3.5.0 (read adds to the statistics, readVectored does not), ParquetInputFormat of
# Parquet (vectored by default in 1.16.0 of Spark 4.1, not in 1.15.2 of 4.0), RecordReaderUtils of ORC and
# getFSBytesReadOnThreadCallback in SparkHadoopUtil of Spark; its documentation, "Web UI" (Input: bytes read from
# storage). Other file systems than the local one were not run. Needs Java 17 and Maven.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/pom.xml" <<'XML'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>local</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.spark</groupId>
      <artifactId>spark-sql_2.13</artifactId>
      <version>4.2.0</version>
      <exclusions>
        <exclusion>
          <groupId>org.rocksdb</groupId>
          <artifactId>rocksdbjni</artifactId>
        </exclusion>
      </exclusions>
    </dependency>
  </dependencies>
</project>
XML
mvn -q -f "$folder/pom.xml" -Dmaven.repo.local="$folder/maven" dependency:copy-dependencies \
    -DoutputDirectory="$folder/jars" >&2
rm -rf "$folder/maven"

cat >"$folder/Reads.java" <<'JAVA'
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

public class Reads {
    static long counted;
    static boolean asSeen = true;
    static SparkSession spark;

    static long readBytes() throws Exception {
        return Long.parseLong(Files.readAllLines(Path.of("/proc/self/io")).get(0).substring("rchar: ".length()));
    }

    /** Shows what a query read and what is counted of it, which is nearly all or nearly nothing. */
    static void show(String title, String format, String path, String vectored, String[] sums, boolean all)
            throws Exception {
        long read = 0;
        for (int time = 0; time < 2; time++) {
            spark.sparkContext().listenerBus().waitUntilEmpty();
            counted = 0;
            long before = readBytes();
            spark.read().schema("id BIGINT, r DOUBLE, t STRING").option("parquet.hadoop.vectored.io.enabled", vectored)
                .format(format).load(path + "." + format).selectExpr(sums).collectAsList();
            read = readBytes() - before;
            spark.sparkContext().listenerBus().waitUntilEmpty();
        }
        System.out.printf("%s: %.1f MB read, Spark's bytesRead %.2f MB%n", title, read / 1e6, counted / 1e6);
        asSeen &= read > 1_000_000 && (all ? counted > 0.7 * read && counted < 1.1 * read : counted < 0.1 * read);
    }

    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0];
        spark = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.local.dir", folder).config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate();
        spark.sparkContext().addSparkListener(new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                counted += end.taskMetrics().inputMetrics().bytesRead();
            }
        });
        String path = folder + "/rows";
        Dataset<Row> rows = spark.range(0, 300000, 1, 2)
            .selectExpr("id", "rand(1) AS r", "sha1(string(id)) AS t");
        for (String format : new String[] {"csv", "parquet", "orc"})
            rows.write().format(format).save(path + "." + format);
        String[] three = {"sum(id)", "sum(r)", "max(t)"}, one = {"sum(r)"};
        show("CSV", "csv", path, "true", three, true);
        show("Parquet", "parquet", path, "true", three, false);
        show("Parquet, one column of three", "parquet", path, "true", one, false);
        show("Parquet, not vectored", "parquet", path, "false", three, true);
        show("Parquet, not vectored, one column of three", "parquet", path, "false", one, true);
        show("ORC", "orc", path, "true", three, false);
        spark.stop();
        if (!asSeen) {
            System.out.println("This has changed.");
            System.exit(1);
        }
    }
}
JAVA
opens=()
for package in lang lang.invoke lang.reflect io net nio util util.concurrent util.concurrent.atomic; do
    opens+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done
for package in nio.ch nio.cs security.action util.calendar; do
    opens+=("--add-opens=java.base/sun.$package=ALL-UNNAMED")
done
java -Xmx600m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${opens[@]}" -cp "$folder/jars/*" "$folder/Reads.java" \
    "$folder" 2>"$folder/log" || { tail -n 3 "$folder/log" >&2 && exit 1; }
