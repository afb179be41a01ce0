#!/usr/bin/env bash
# go-ycsb measures a store at full speed, with a target of 200 operations per second, if it was told to warm it up: the
# median is 35 ms, where it is 2 ms at 200. During warmuptime the workers ignore the target; after it they hold it over
# the time since their start, the warm-up included, of which they count no operation: so they stay at full speed until
# they have made up for 200 operations for each second of it, and all these are measured. With a store that can do ten
# times the target, a warm-up of 60 s and operations for 300 s, more than a fifth are of that kind, and with them each
# percentile from the 78th on: the tail of a quiet system is that of a saturated one, and the storage beneath seems to
# need bandwidth that the service never asks for. Without a warm-up, which was to make the figures better, they are
# right. The sign of it is OPS above the target, and that alone: the lines every ten seconds are averages since the
# start.
#
# A store that does one operation at a time, in 2 ms, counts those of each second; 16 workers.
# Run with go-ycsb v1.0.3 of the Go proxy and Go 1.26, 2026-11-30:
#   warm-up of 0 s: OPS 199, p50 2.2 ms; by the second [], then [195 204 197 203 197 203 197 203 197 203 197 203 1]
#   warm-up of 4 s: OPS 297, p50 35.5 ms; by the second [396 398 409 416], then [418 418 439 324 200 200 201 199]
# Source: go-ycsb's pkg/client/client.go (run and throttle: the start of the run is before the warm-up, its operations
# are counted from the end of the warm-up on). Needs go.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The compiler's own cache is kept, for without it the build takes longer than all else.
export GOMODCACHE="$folder/modules" GOFLAGS="-mod=mod -modcacherw -buildvcs=false"
cat >"$folder/go.mod" <<'GO'
module outruns

go 1.21

require github.com/pingcap/go-ycsb v1.0.3
GO
cat >"$folder/main.go" <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/magiconair/properties"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

const target, operations, warmUp = 200, 2400, 4

// store does one operation at a time, and counts those of each second.
type store struct {
	ycsb.DB
	sync.Mutex
	start  time.Time
	counts [60]int
}

func (s *store) InitThread(ctx context.Context, _, _ int) context.Context { return ctx }
func (s *store) CleanupThread(context.Context)                            {}

func (s *store) Read(context.Context, string, string, []string) (map[string][]byte, error) {
	s.Lock()
	defer s.Unlock()
	s.counts[int(time.Since(s.start).Seconds())]++
	time.Sleep(2 * time.Millisecond)
	return nil, nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// run returns go-ycsb's operations per second and median in ms.
func run(seconds int, output string) (float64, float64) {
	settings := properties.LoadMap(map[string]string{
		"recordcount": "1000", "readproportion": "1", "updateproportion": "0", "threadcount": "16",
		"operationcount": strconv.Itoa(operations), "target": strconv.Itoa(target), "warmuptime": strconv.Itoa(seconds),
		"measurement.output_file": output, "outputstyle": "json", "measurement.interval": "1000",
	})
	measurement.InitMeasure(settings)
	workload, err := ycsb.GetWorkloadCreator("core").Create(settings)
	check(err)
	counted := &store{start: time.Now()}
	client.NewClient(settings, workload, client.DbWrapper{DB: counted}).Run(context.Background())
	measurement.Output()

	text, err := os.ReadFile(output)
	check(err)
	var lines []map[string]string
	check(json.Unmarshal(text, &lines))
	rate, err := strconv.ParseFloat(lines[0]["OPS"], 64)
	check(err)
	median, err := strconv.ParseFloat(lines[0]["50th(us)"], 64)
	check(err)
	last := len(counted.counts)
	for last > 0 && counted.counts[last-1] == 0 {
		last--
	}
	fmt.Printf("warm-up of %d s: OPS %.0f, p50 %.1f ms; by the second %v, then %v\n",
		seconds, rate, median/1000, counted.counts[:seconds], counted.counts[seconds:last])
	return rate, median / 1000
}

func main() {
	rate, median := run(0, os.Args[1])
	warmRate, warmMedian := run(warmUp, os.Args[1])
	if rate > 1.1*target || warmRate < 1.2*target || warmMedian < 3*median {
		fmt.Println("This has changed.")
		os.Exit(1)
	}
}
GO
cd "$folder"
go build -o outruns . 2>"$folder/log" || { cat "$folder/log" && exit 1; }
./outruns "$folder/output" | grep -v "^Using request distribution"
