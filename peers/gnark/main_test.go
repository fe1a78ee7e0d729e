package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestExpandIsAHashWithACounter(t *testing.T) {
	first := sha256.Sum256([]byte("fp\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"))
	bytes := expand("fp", 7, 1, 40)
	if string(bytes[:32]) != string(first[:]) || len(bytes) != 40 {
		t.Fatalf("%x", bytes)
	}
}

// Everything can be prepared and timed; what two ways of this program have in common is compared by the other side.
func TestEveryOperationAnswers(t *testing.T) {
	signed := map[string]string{"ecdsa-verify": "", "ecrecover": ""}
	for _, library := range []string{"gnark-crypto", "go-eth-kzg"} {
		operations, module := operationsOf(library)
		if version(module) == "" {
			t.Errorf("%s has no version", module)
		}
		for _, operation := range operations.operations {
			w := &order{Curve: operation.Curve, Operation: operation.Operation, Size: 3, Threads: 1, Seed: 5}
			if _, ok := signed[operation.Operation]; ok {
				w.Inputs = strings.Repeat("00", 10)
				if _, err := operation.prepare(w); err == nil {
					t.Errorf("%s takes anything for signatures", operation.Operation)
				}
				continue
			}
			made, err := operation.prepare(w)
			if err != nil {
				t.Fatalf("%s/%s: %v", operation.Curve, operation.Operation, err)
			}
			if len(made.answer) == 0 {
				t.Errorf("%s/%s says nothing", operation.Curve, operation.Operation)
			}
			made.run(2)
		}
	}
}

func TestTwiceTheGenerator(t *testing.T) {
	g := bls12381G1Generator()
	in := bls12381G1Jac(&g)
	padded := append(append(make([]byte, 16), in[:48]...), append(make([]byte, 16), in[48:]...)...)
	sum, err := blsG1Add(append(append([]byte{}, padded...), padded...))
	if err != nil {
		t.Fatal(err)
	}
	// EIP-2537, bls_g1add_(g1+g1=2*g1).
	if x := hex.EncodeToString(sum[16:64]); x != "0572cbea904d67468808c8eb50a9450c9721db309128012543902d0ac358a62ae28f75bb8f1c7c42c39a8c5529bf0f4e" {
		t.Fatal(x)
	}
}

func TestOrders(t *testing.T) {
	operations, module := operationsOf("gnark-crypto")
	var current prepared
	for line, complaint := range map[string]string{
		"":                             "unexpected end",
		`{"do":"time","iterations":1}`: "nothing is prepared",
		`{"do":"prepare","curve":"p256","operation":"fp-mul"}`: "no operation fp-mul of p256",
		`{"do":"sing"}`: "unknown order",
	} {
		if _, err := obey(operations, "gnark-crypto", module, []byte(line), &current); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
