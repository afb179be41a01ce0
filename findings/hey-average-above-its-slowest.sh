#!/usr/bin/env bash
# hey shows an average of 21 ms above a slowest request of 1 ms, for 3,000,000 requests of which the first million took
# 1 ms and the others 10. It keeps the times of the first million answers, and makes of them the percentiles, the
# histogram, the fastest and the slowest; for the average it adds the times of all and divides by those it kept. So from
# a million on the average grows with the length of the test, three million are three times the truth, while what
# happens later, a stall, a checkpoint, storage whose cache is full, is in no other figure, and the percentiles are of
# the beginning, when caches were cold or the write cache of a device was empty. Below a million all are right, so a
# trial shows nothing. The count by status ends at a million too, and the size per request is as wrong as the average.
# Requests per second are of all requests: times the average, they are three times the connections.
#
# hey's own report is given results in place of answers, as three million of these take minutes.
# Run with hey 0.1.5, built by Go 1.26, on Debian 12, 2026-11-30:
#   500000 of 1 ms, then 500000 of 10 ms: mean 5.5 ms by 20 workers at 3636/s
#     hey: average 5.5 ms, slowest 10.0, p99 10.0, 1000000 answers of 8192 bytes; rate x average = 20
#   1000000 of 1 ms, then 2000000 of 10 ms: mean 7.0 ms by 20 workers at 2857/s
#     hey: average 21.0 ms, slowest 1.0, p99 1.0, 1000000 answers of 24576 bytes; rate x average = 60
# hey itself, with 1,100,200 requests of which the last 200 took 500 ms, showed 90 ms as the slowest (run once by hand).
# Source: requester/report.go of hey 0.1.5 (maxRes in runReporter, and finalize). Needs go.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The compiler's own cache is kept, for without it the build takes longer than all else.
export GOMODCACHE="$folder/modules" GOFLAGS="-mod=mod -modcacherw -buildvcs=false"
go mod download github.com/rakyll/hey@v0.1.5
cp -r "$folder/modules/github.com/rakyll/hey@v0.1.5" "$folder/hey"
chmod -R u+w "$folder/hey"
cd "$folder/hey"
cat >requester/report_results.go <<'GO'
package requester

import (
	"io"
	"time"
)

// ReportResults writes the report of a test of so many seconds to a writer, as Work.Run does with its answers.
func ReportResults(durations []time.Duration, total time.Duration, writer io.Writer) {
	results := make(chan *result, 1000)
	report := newReport(writer, results, "", len(durations))
	go runReporter(report)
	for _, duration := range durations {
		results <- &result{statusCode: 200, duration: duration, contentLength: 8192}
	}
	close(results)
	<-report.done
	report.finalize(total)
}
GO
cat >hey.go <<'GO'
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rakyll/hey/requester"
)

const workers = 20

// figures reports on a test whose later requests are slower, and returns what the report says.
func figures(fast, slow int) map[string]float64 {
	var durations []time.Duration
	var busy time.Duration
	for number := range fast + slow {
		duration := time.Millisecond
		if number >= fast {
			duration = 10 * time.Millisecond
		}
		durations = append(durations, duration)
		busy += duration
	}
	var output strings.Builder
	requester.ReportResults(durations, busy/workers, &output)
	said := map[string]float64{}
	for title, pattern := range map[string]string{
		"average": `Average:\s+(\S+)`, "slowest": `Slowest:\s+(\S+)`, "p99": `99%+ in (\S+)`,
		"rate": `Requests/sec:\s+(\S+)`, "answers": `\[200\]\s+(\d+)`, "size": `Size/request:\s+(\d+)`,
	} {
		match := regexp.MustCompile(pattern).FindStringSubmatch(output.String())
		if match == nil {
			fmt.Println(output.String())
			os.Exit(1)
		}
		said[title], _ = strconv.ParseFloat(match[1], 64)
	}
	fmt.Printf("%d of 1 ms, then %d of 10 ms: mean %.1f ms by %d workers at %.0f/s\n",
		fast, slow, busy.Seconds()*1000/float64(fast+slow), workers, said["rate"])
	fmt.Printf("  hey: average %.1f ms, slowest %.1f, p99 %.1f, %.0f answers of %.0f bytes; rate x average = %.0f\n",
		said["average"]*1000, said["slowest"]*1000, said["p99"]*1000, said["answers"], said["size"],
		said["rate"]*said["average"])
	return said
}

func main() {
	right := figures(500_000, 500_000)
	wrong := figures(1_000_000, 2_000_000)
	asSeen := right["average"] == 0.0055 && right["slowest"] == 0.01 && right["p99"] == 0.01
	asSeen = asSeen && right["answers"] == 1_000_000 && right["size"] == 8192
	asSeen = asSeen && wrong["average"] == 0.021 && wrong["slowest"] == 0.001 && wrong["p99"] == 0.001
	asSeen = asSeen && wrong["answers"] == 1_000_000 && wrong["size"] == 3*8192
	asSeen = asSeen && wrong["rate"]*wrong["average"] > 2.9*workers
	if !asSeen {
		fmt.Println("This has changed.")
		os.Exit(1)
	}
}
GO
go build -o "$folder/report" . 2>"$folder/log" || { cat "$folder/log" && exit 1; }
"$folder/report"
