package main

import (
	"crypto/sha256"
	"encoding/binary"
)

// expand gives n bytes that follow from a label, a seed and an index alone: SHA-256 of label, a zero byte, seed, index (eight
// bytes each) and a counter (four), all big-endian, block after block.
func expand(label string, seed, index uint64, n int) []byte {
	message := append([]byte(label), 0)
	message = binary.BigEndian.AppendUint64(message, seed)
	message = binary.BigEndian.AppendUint64(message, index)
	var out []byte
	for counter := uint32(0); len(out) < n; counter++ {
		block := sha256.Sum256(binary.BigEndian.AppendUint32(message[:len(message):len(message)], counter))
		out = append(out, block[:]...)
	}
	return out[:n]
}

// wide gives the 64 bytes of which a field element is the remainder.
func (w *order) wide(label string, index int) []byte {
	return expand(label, w.Seed, uint64(index), 64)
}

// chained is an operation that works on its own last result, so that no step can be left out nor begin before the one
// before it has ended; its answer is the state after chainSteps steps.
func chained(run func(uint64), state func() []byte) (prepared, error) {
	run(chainSteps)
	return prepared{answer: state(), run: run}, nil
}

const chainSteps = 64

// spread is how many different inputs an operation without a chain takes in turns.
const spread = 16

// answered is how many of them are in the answer.
const answered = 4

func boolByte(value bool) byte {
	if value {
		return 1
	}
	return 0
}
