// Libraries written in Go as a program that works and times itself when it is told to: lines of JSON on standard input, an
// answer to each on standard output. The protocol and the rule by which inputs follow from a seed are in
// ../../curves/peer/README.md; the Rust program there speaks it too.
//
//	gnark gnark-crypto    (or no argument)
//	gnark go-eth-kzg      go-eth-kzg
package main

//go:generate go run ./generate

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// order is what the other side wants.
type order struct {
	Do         string `json:"do"`
	Curve      string `json:"curve"`
	Operation  string `json:"operation"`
	Size       int    `json:"size"`
	Threads    int    `json:"threads"`
	Seed       uint64 `json:"seed"`
	Inputs     string `json:"inputs"`
	Iterations uint64 `json:"iterations"`
}

// prepared is an operation with its inputs at hand.
type prepared struct {
	// answer holds the canonical bytes of what it computes.
	answer []byte
	// run does it so many times.
	run func(iterations uint64)
}

// operation is one that can be asked for.
type operation struct {
	Curve     string `json:"curve"`
	Operation string `json:"operation"`
	How       string `json:"how"`
	prepare   func(w *order) (prepared, error)
}

// table lists operations in the order in which they were added.
type table struct{ operations []operation }

func (t *table) add(curve, name, how string, prepare func(w *order) (prepared, error)) {
	t.operations = append(t.operations, operation{curve, name, how, prepare})
}

func (t *table) find(curve, name string) *operation {
	for i := range t.operations {
		if t.operations[i].Curve == curve && t.operations[i].Operation == name {
			return &t.operations[i]
		}
	}
	return nil
}

func main() {
	name := "gnark-crypto"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	t, module := operationsOf(name)
	if t == nil {
		fmt.Fprintf(os.Stderr, "gnark: no library %q here; gnark-crypto and go-eth-kzg are\n", name)
		os.Exit(2)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	var current prepared
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		answer, err := obey(t, name, module, line, &current)
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}

func operationsOf(name string) (*table, string) {
	t := new(table)
	switch name {
	case "gnark-crypto":
		bn254Operations(t)
		bls12381Operations(t)
		bls12377Operations(t)
		secp256k1Operations(t)
		blsSignatures(t)
		evmPrecompiles(t)
		return t, "github.com/consensys/gnark-crypto"
	case "go-eth-kzg":
		kzgOperations(t)
		return t, "github.com/crate-crypto/go-eth-kzg"
	}
	return nil, ""
}

func obey(t *table, name, module string, line []byte, current *prepared) (answer map[string]any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	var w order
	if err := json.Unmarshal(line, &w); err != nil {
		return nil, err
	}
	switch w.Do {
	case "describe":
		return map[string]any{
			"name": name, "version": version(module), "compiler": runtime.Version() + " " + runtime.Compiler,
			"operations": t.operations,
		}, nil
	case "prepare":
		// What the last operation kept is given back before the next one is timed.
		*current = prepared{}
		runtime.GC()
		found := t.find(w.Curve, w.Operation)
		if found == nil {
			return nil, fmt.Errorf("no operation %s of %s", w.Operation, w.Curve)
		}
		if w.Threads == 1 {
			runtime.GOMAXPROCS(1)
		} else {
			runtime.GOMAXPROCS(runtime.NumCPU())
		}
		made, err := found.prepare(&w)
		if err != nil {
			return nil, err
		}
		*current = made
		digest := sha256.Sum256(made.answer)
		shown := made.answer
		if len(shown) > 96 {
			shown = shown[:96]
		}
		return map[string]any{"digest": hex.EncodeToString(digest[:]), "answer": hex.EncodeToString(shown)}, nil
	case "time":
		if current.run == nil {
			return nil, fmt.Errorf("nothing is prepared")
		}
		cpu, start := cpuNs(), time.Now()
		current.run(w.Iterations)
		wall := time.Since(start).Nanoseconds()
		return map[string]any{"wall_ns": wall, "cpu_ns": cpuNs() - cpu}, nil
	}
	return nil, fmt.Errorf("unknown order %q", w.Do)
}

// cpuNs is the CPU time of this process so far, all threads.
func cpuNs() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

// version of a module that was built into this program, and of the modules that it computes with.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	found := []string{}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			found = append([]string{dependency.Version}, found...)
		} else if dependency.Path == "github.com/consensys/gnark-crypto" {
			found = append(found, "(gnark-crypto "+dependency.Version+")")
		}
	}
	return strings.Join(found, " ")
}
