package main

import (
	"crypto/sha256"
	"fmt"
	"sync"

	goethkzg "github.com/crate-crypto/go-eth-kzg"
)

// kzgBlob is a blob of EIP-4844 with its commitment and proof.
type kzgBlob struct {
	blob       *goethkzg.Blob
	commitment goethkzg.KZGCommitment
	proof      goethkzg.KZGProof
}

var kzgContext = sync.OnceValues(goethkzg.NewContext4096Secure)

// kzgMade are blobs that were made before, by seed and number: their proofs take longer than anything that is measured.
var kzgMade = map[[2]uint64]kzgBlob{}

func kzgBlobs(w *order, n int) (*goethkzg.Context, []kzgBlob, error) {
	context, err := kzgContext()
	if err != nil {
		return nil, nil, err
	}
	blobs := make([]kzgBlob, n)
	for i := range blobs {
		key := [2]uint64{w.Seed, uint64(i)}
		made, ok := kzgMade[key]
		if !ok {
			made.blob = new(goethkzg.Blob)
			for j := range goethkzg.ScalarsPerBlob {
				element := bls12381Fr(w, "blob", goethkzg.ScalarsPerBlob*i+j)
				bytes := element.Bytes()
				copy(made.blob[32*j:], bytes[:])
			}
			if made.commitment, err = context.BlobToKZGCommitment(made.blob, 0); err != nil {
				return nil, nil, err
			}
			if made.proof, err = context.ComputeBlobKZGProof(made.blob, made.commitment, 0); err != nil {
				return nil, nil, err
			}
			kzgMade[key] = made
		}
		blobs[i] = made
	}
	return context, blobs, nil
}

// kzgOpening is the value of the first blob's polynomial at a point, and the proof of it.
func kzgOpening(w *order) (context *goethkzg.Context, blob kzgBlob, z, y goethkzg.Scalar, proof goethkzg.KZGProof, err error) {
	context, blobs, err := kzgBlobs(w, 1)
	if err != nil {
		return
	}
	blob = blobs[0]
	element := bls12381Fr(w, "z", 0)
	z = element.Bytes()
	proof, y, err = context.ComputeKZGProof(blob.blob, z, 0)
	return
}

func repeatNil(check func() error) func(uint64) {
	return repeatTrue(func() bool { return check() == nil })
}

func kzgOperations(t *table) {
	const name = "kzg"
	t.add(name, "commit", "BlobToKZGCommitment, one goroutine", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		return prepared{blobs[0].commitment[:], repeatNil(func() error {
			_, err := context.BlobToKZGCommitment(blobs[0].blob, w.Threads)
			return err
		})}, nil
	})
	t.add(name, "proof", "ComputeKZGProof, one goroutine", func(w *order) (prepared, error) {
		context, blob, z, y, proof, err := kzgOpening(w)
		if err != nil {
			return prepared{}, err
		}
		return prepared{append(proof[:], y[:]...), repeatNil(func() error {
			_, _, err := context.ComputeKZGProof(blob.blob, z, w.Threads)
			return err
		})}, nil
	})
	t.add(name, "blob-proof", "ComputeBlobKZGProof, one goroutine", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		return prepared{blobs[0].proof[:], repeatNil(func() error {
			_, err := context.ComputeBlobKZGProof(blobs[0].blob, blobs[0].commitment, w.Threads)
			return err
		})}, nil
	})
	t.add(name, "verify-proof", "VerifyKZGProof", func(w *order) (prepared, error) {
		context, blob, z, y, proof, err := kzgOpening(w)
		if err != nil {
			return prepared{}, err
		}
		check := func() error { return context.VerifyKZGProof(blob.commitment, z, y, proof) }
		wrong := context.VerifyKZGProof(blob.commitment, z, z, proof)
		return prepared{[]byte{boolByte(check() == nil), boolByte(wrong == nil)}, repeatNil(check)}, nil
	})
	t.add(name, "verify-blob", "VerifyBlobKZGProof", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		b := blobs[0]
		check := func() error { return context.VerifyBlobKZGProof(b.blob, b.commitment, b.proof) }
		wrong := context.VerifyBlobKZGProof(b.blob, b.commitment, goethkzg.KZGProof(b.commitment))
		return prepared{[]byte{boolByte(check() == nil), boolByte(wrong == nil)}, repeatNil(check)}, nil
	})
	t.add(name, "verify-blob-batch", "VerifyBlobKZGProofBatch", func(w *order) (prepared, error) {
		context, made, err := kzgBlobs(w, w.Size)
		if err != nil {
			return prepared{}, err
		}
		var blobs []*goethkzg.Blob
		var commitments []goethkzg.KZGCommitment
		var proofs []goethkzg.KZGProof
		for _, one := range made {
			blobs, commitments, proofs = append(blobs, one.blob), append(commitments, one.commitment), append(proofs, one.proof)
		}
		check := func() error { return context.VerifyBlobKZGProofBatch(blobs, commitments, proofs) }
		right := check() == nil
		last := len(proofs) - 1
		kept := proofs[last]
		proofs[last] = goethkzg.KZGProof(commitments[last])
		wrong := check() == nil
		proofs[last] = kept
		return prepared{[]byte{boolByte(right), boolByte(wrong)}, repeatNil(check)}, nil
	})
	kzgCells(t)
	t.add("evm", "kzg-point-evaluation", "VerifyKZGProof, crypto/sha256", func(w *order) (prepared, error) {
		context, blob, z, y, proof, err := kzgOpening(w)
		if err != nil {
			return prepared{}, err
		}
		hash := versionedHash(blob.commitment)
		input := append(append(append(append(hash[:], z[:]...), y[:]...), blob.commitment[:]...), proof[:]...)
		output, err := pointEvaluation(context, input)
		return prepared{output, repeatNil(func() error {
			_, err := pointEvaluation(context, input)
			return err
		})}, err
	})
}

// kzgCells are the cells of EIP-7594.
func kzgCells(t *table) {
	const name = "kzg"
	t.add(name, "cells", "ComputeCells, one goroutine", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		cells, err := context.ComputeCells(blobs[0].blob, w.Threads)
		return prepared{joinedCells(cells, nil), repeatNil(func() error {
			_, err := context.ComputeCells(blobs[0].blob, w.Threads)
			return err
		})}, err
	})
	t.add(name, "cells-and-proofs", "ComputeCellsAndKZGProofs, one goroutine", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		cells, proofs, err := context.ComputeCellsAndKZGProofs(blobs[0].blob, w.Threads)
		return prepared{joinedCells(cells, proofs[:]), repeatNil(func() error {
			_, _, err := context.ComputeCellsAndKZGProofs(blobs[0].blob, w.Threads)
			return err
		})}, err
	})
	t.add(name, "recover-cells", "RecoverCellsAndComputeKZGProofs, one goroutine", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		all, err := context.ComputeCells(blobs[0].blob, w.Threads)
		if err != nil {
			return prepared{}, err
		}
		var ids []uint64
		var half []*goethkzg.Cell
		for id := 0; id < len(all); id += 2 {
			ids, half = append(ids, uint64(id)), append(half, all[id])
		}
		cells, proofs, err := context.RecoverCellsAndComputeKZGProofs(ids, half, w.Threads)
		return prepared{joinedCells(cells, proofs[:]), repeatNil(func() error {
			_, _, err := context.RecoverCellsAndComputeKZGProofs(ids, half, w.Threads)
			return err
		})}, err
	})
	t.add(name, "verify-cells", "VerifyCellKZGProofBatch", func(w *order) (prepared, error) {
		context, blobs, err := kzgBlobs(w, 1)
		if err != nil {
			return prepared{}, err
		}
		all, proofs, err := context.ComputeCellsAndKZGProofs(blobs[0].blob, w.Threads)
		if err != nil {
			return prepared{}, err
		}
		count := min(max(w.Size, 1), len(all))
		var ids []uint64
		var commitments []goethkzg.KZGCommitment
		var others []goethkzg.KZGProof
		for id := range count {
			ids, commitments = append(ids, uint64(id)), append(commitments, blobs[0].commitment)
			others = append(others, goethkzg.KZGProof(blobs[0].commitment))
		}
		check := func() error {
			return context.VerifyCellKZGProofBatch(commitments, ids, all[:count], proofs[:count])
		}
		wrong := context.VerifyCellKZGProofBatch(commitments, ids, all[:count], others)
		return prepared{[]byte{boolByte(check() == nil), boolByte(wrong == nil)}, repeatNil(check)}, nil
	})
}

func joinedCells(cells [goethkzg.CellsPerExtBlob]*goethkzg.Cell, proofs []goethkzg.KZGProof) (out []byte) {
	for _, cell := range cells {
		if cell != nil {
			out = append(out, cell[:]...)
		}
	}
	for _, proof := range proofs {
		out = append(out, proof[:]...)
	}
	return out
}

func versionedHash(commitment goethkzg.KZGCommitment) [32]byte {
	hash := sha256.Sum256(commitment[:])
	hash[0] = 1
	return hash
}

// pointEvaluation is the precompile of EIP-4844: elements of a blob and the modulus, if the proof holds.
func pointEvaluation(context *goethkzg.Context, input []byte) ([]byte, error) {
	if len(input) != 192 {
		return nil, fmt.Errorf("192 bytes are wanted")
	}
	commitment := goethkzg.KZGCommitment(input[96:144])
	if versionedHash(commitment) != [32]byte(input[:32]) {
		return nil, fmt.Errorf("another commitment")
	}
	z, y := goethkzg.Scalar(input[32:64]), goethkzg.Scalar(input[64:96])
	if err := context.VerifyKZGProof(commitment, z, y, goethkzg.KZGProof(input[144:192])); err != nil {
		return nil, err
	}
	output := make([]byte, 64)
	output[30] = goethkzg.ScalarsPerBlob >> 8
	copy(output[32:], bls12381Modulus())
	return output, nil
}
