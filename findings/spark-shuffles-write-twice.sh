#!/usr/bin/env bash
# Spark writes each byte that it shuffles twice by default, and counts it once: 12.5 MB are "Shuffle Write" of its
# pages, bytesWritten of its tasks and events, and 25.1 MB went to files. With 201 partitions instead of 200 as many are
# counted and 12.5 MB written. Up to spark.shuffle.sort.bypassMergeThreshold, 200, and so with the 200 of
# spark.sql.shuffle.partitions that nobody changed, a task does not sort: it writes a file for each partition, copies
# all of them into the one that others fetch, and deletes them. Only the first is counted. The setting is described as
# what avoids a sort, and fewer partitions, the usual advice for little data, are on this side of it. So local disks
# that are sized or bought by shuffle bytes are asked for twice as much; a job whose partitions are raised from 200 to
# 201 halves its writes, with the same figures; and what the system shows beyond Spark's is taken for spill, which is 0.
# How much of the first copy reaches a device depends on the memory that the system has for it until it is deleted.
#
# A GROUP BY whose groups are single rows is run twice with each number of partitions, and the second counted. What it
# wrote is from the system, as wchar of the process.
# Run with spark-sql_2.13 4.2.0 of Maven Central on Debian 12, 2026-11-30:
#   20 partitions: 24.9 MB written to files, Spark's shuffle bytesWritten 12.4 MB, spilled 0.0 MB
#   200 partitions: 25.1 MB written to files, Spark's shuffle bytesWritten 12.5 MB, spilled 0.0 MB
#   201 partitions: 12.5 MB written to files, Spark's shuffle bytesWritten 12.5 MB, spilled 0.0 MB
# Source: shouldBypassMergeSort in SortShuffleWriter and writePartitionedData in BypassMergeSortShuffleWriter of Spark
# 4.2.0; its documentation, "Configuration" (spark.sql.shuffle.partitions and spark.shuffle.sort.bypassMergeThreshold,
# both 200; nothing on a second copy) and "Monitoring" (bytesWritten in shuffle operations). Needs Java 17 and Maven.
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

cat >"$folder/Shuffles.java" <<'JAVA'
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.SparkSession;

public class Shuffles {
    static long counted;
    static long spilled;

    static long writtenBytes() throws Exception {
        return Long.parseLong(Files.readAllLines(Path.of("/proc/self/io")).get(1).substring("wchar: ".length()));
    }

    public static void main(String[] arguments) throws Exception {
        String folder = arguments[0];
        SparkSession spark = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.local.dir", folder).config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate();
        spark.sparkContext().addSparkListener(new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                counted += end.taskMetrics().shuffleWriteMetrics().bytesWritten();
                spilled += end.taskMetrics().diskBytesSpilled();
            }
        });
        boolean asSeen = spark.conf().get("spark.sql.shuffle.partitions").equals("200");
        spark.range(0, 300000, 1, 2).selectExpr("id", "sha1(string(id)) AS t").createOrReplaceTempView("rows");
        for (int partitions : new int[] {20, 200, 201}) {
            spark.conf().set("spark.sql.shuffle.partitions", partitions);
            long written = 0;
            for (int time = 0; time < 2; time++) {
                spark.sparkContext().listenerBus().waitUntilEmpty();
                counted = 0;
                spilled = 0;
                long before = writtenBytes();
                spark.sql("SELECT sum(ids) FROM (SELECT t, count(id) AS ids FROM rows GROUP BY t)").collectAsList();
                written = writtenBytes() - before;
                spark.sparkContext().listenerBus().waitUntilEmpty();
            }
            System.out.printf("%d partitions: %.1f MB written to files, Spark's shuffle bytesWritten %.1f MB, ",
                partitions, written / 1e6, counted / 1e6);
            System.out.printf("spilled %.1f MB%n", spilled / 1e6);
            double times = (double) written / counted;
            asSeen &= counted > 1_000_000 && spilled == 0;
            asSeen &= partitions <= 200 ? times > 1.8 && times < 2.2 : times < 1.2;
        }
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
java -Xmx600m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "${opens[@]}" -cp "$folder/jars/*" "$folder/Shuffles.java" \
    "$folder" 2>"$folder/log" || { tail -n 3 "$folder/log" >&2 && exit 1; }
