package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-381"
	blsfp "github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	blsfr "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	bnfp "github.com/consensys/gnark-crypto/ecc/bn254/fp"
	"github.com/consensys/gnark-crypto/ecc/secp256k1"
	"github.com/consensys/gnark-crypto/ecc/secp256k1/ecdsa"
	secpfp "github.com/consensys/gnark-crypto/ecc/secp256k1/fp"
	"golang.org/x/crypto/ripemd160" //nolint:staticcheck // the precompile is this function
	"golang.org/x/crypto/sha3"
)

// Precompiles of the Ethereum virtual machine, put together from the library's parts as its clients in Go do: decode, check
// that points are on the curve and, where the specification says so, in the group, compute, encode.

var (
	errEncoding = errors.New("not a field element")
	errCurve    = errors.New("not on the curve")
	errGroup    = errors.New("not in the group")
	errLength   = errors.New("wrong length")
)

// --- BN254: EIP-196 and EIP-197, coordinates of 32 bytes.

func bnCoordinate(x *bnfp.Element, in []byte) error { return x.SetBytesCanonical(in[:32]) }

func bnG1(in []byte) (p bn254.G1Affine, err error) {
	if bnCoordinate(&p.X, in) != nil || bnCoordinate(&p.Y, in[32:]) != nil {
		return p, errEncoding
	}
	if !p.IsInfinity() && !p.IsOnCurve() {
		return p, errCurve
	}
	return p, nil
}

func bnG2(in []byte) (p bn254.G2Affine, err error) {
	for i, x := range []*bnfp.Element{&p.X.A1, &p.X.A0, &p.Y.A1, &p.Y.A0} {
		if bnCoordinate(x, in[32*i:]) != nil {
			return p, errEncoding
		}
	}
	if p.IsInfinity() {
		return p, nil
	}
	if !p.IsOnCurve() {
		return p, errCurve
	}
	if !p.IsInSubGroup() {
		return p, errGroup
	}
	return p, nil
}

func bnG2Bytes(p *bn254.G2Affine) (out []byte) {
	for _, x := range []*bnfp.Element{&p.X.A1, &p.X.A0, &p.Y.A1, &p.Y.A0} {
		out = append(out, bn254FpBytes(x)...)
	}
	return out
}

func bnAdd(in []byte) ([]byte, error) {
	p, err := bnG1(in)
	if err != nil {
		return nil, err
	}
	q, err := bnG1(in[64:])
	if err != nil {
		return nil, err
	}
	p.Add(&p, &q)
	return bn254G1Bytes(&p), nil
}

func bnMul(in []byte) ([]byte, error) {
	p, err := bnG1(in)
	if err != nil {
		return nil, err
	}
	p.ScalarMultiplication(&p, new(big.Int).SetBytes(in[64:96]))
	return bn254G1Bytes(&p), nil
}

func bnPairing(in []byte) ([]byte, error) {
	if len(in)%192 != 0 {
		return nil, errLength
	}
	var ps []bn254.G1Affine
	var qs []bn254.G2Affine
	for ; len(in) > 0; in = in[192:] {
		p, err := bnG1(in)
		if err != nil {
			return nil, err
		}
		q, err := bnG2(in[64:])
		if err != nil {
			return nil, err
		}
		ps, qs = append(ps, p), append(qs, q)
	}
	ok, err := bn254.PairingCheck(ps, qs)
	return word(ok), err
}

// word is a truth as the machine writes it.
func word(value bool) []byte {
	out := make([]byte, 32)
	out[31] = boolByte(value)
	return out
}

// --- BLS12-381: EIP-2537, coordinates of 64 bytes of which the first 16 are zero.

func blsCoordinate(x *blsfp.Element, in []byte) error {
	for _, zero := range in[:16] {
		if zero != 0 {
			return errEncoding
		}
	}
	return x.SetBytesCanonical(in[16:64])
}

func blsPad(out []byte, x *blsfp.Element) []byte {
	return append(append(out, make([]byte, 16)...), bls12381FpBytes(x)...)
}

func blsG1(in []byte, group bool) (p bls12381.G1Affine, err error) {
	if blsCoordinate(&p.X, in) != nil || blsCoordinate(&p.Y, in[64:]) != nil {
		return p, errEncoding
	}
	if p.IsInfinity() {
		return p, nil
	}
	if !p.IsOnCurve() {
		return p, errCurve
	}
	if group && !p.IsInSubGroup() {
		return p, errGroup
	}
	return p, nil
}

func blsG2(in []byte, group bool) (p bls12381.G2Affine, err error) {
	for i, x := range []*blsfp.Element{&p.X.A0, &p.X.A1, &p.Y.A0, &p.Y.A1} {
		if blsCoordinate(x, in[64*i:]) != nil {
			return p, errEncoding
		}
	}
	if p.IsInfinity() {
		return p, nil
	}
	if !p.IsOnCurve() {
		return p, errCurve
	}
	if group && !p.IsInSubGroup() {
		return p, errGroup
	}
	return p, nil
}

func blsG1Out(p *bls12381.G1Affine) []byte { return blsPad(blsPad(nil, &p.X), &p.Y) }

func blsG2Out(p *bls12381.G2Affine) []byte {
	return blsPad(blsPad(blsPad(blsPad(nil, &p.X.A0), &p.X.A1), &p.Y.A0), &p.Y.A1)
}

func blsG1Add(in []byte) ([]byte, error) {
	p, err := blsG1(in, false)
	if err != nil {
		return nil, err
	}
	q, err := blsG1(in[128:], false)
	if err != nil {
		return nil, err
	}
	p.Add(&p, &q)
	return blsG1Out(&p), nil
}

func blsG2Add(in []byte) ([]byte, error) {
	p, err := blsG2(in, false)
	if err != nil {
		return nil, err
	}
	q, err := blsG2(in[256:], false)
	if err != nil {
		return nil, err
	}
	p.Add(&p, &q)
	return blsG2Out(&p), nil
}

func blsG1Msm(in []byte) ([]byte, error) {
	var points []bls12381.G1Affine
	var scalars []blsfr.Element
	for ; len(in) > 0; in = in[160:] {
		p, err := blsG1(in, true)
		if err != nil {
			return nil, err
		}
		var s blsfr.Element
		s.SetBytes(in[128:160])
		points, scalars = append(points, p), append(scalars, s)
	}
	var sum bls12381.G1Affine
	if _, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		return nil, err
	}
	return blsG1Out(&sum), nil
}

func blsG2Msm(in []byte) ([]byte, error) {
	var points []bls12381.G2Affine
	var scalars []blsfr.Element
	for ; len(in) > 0; in = in[288:] {
		p, err := blsG2(in, true)
		if err != nil {
			return nil, err
		}
		var s blsfr.Element
		s.SetBytes(in[256:288])
		points, scalars = append(points, p), append(scalars, s)
	}
	var sum bls12381.G2Affine
	if _, err := sum.MultiExp(points, scalars, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		return nil, err
	}
	return blsG2Out(&sum), nil
}

func blsPairing(in []byte) ([]byte, error) {
	var ps []bls12381.G1Affine
	var qs []bls12381.G2Affine
	for ; len(in) > 0; in = in[384:] {
		p, err := blsG1(in, true)
		if err != nil {
			return nil, err
		}
		q, err := blsG2(in[128:], true)
		if err != nil {
			return nil, err
		}
		ps, qs = append(ps, p), append(qs, q)
	}
	ok, err := bls12381.PairingCheck(ps, qs)
	return word(ok), err
}

func blsMapG1(in []byte) ([]byte, error) {
	var u blsfp.Element
	if blsCoordinate(&u, in) != nil {
		return nil, errEncoding
	}
	p := bls12381.MapToG1(u)
	return blsG1Out(&p), nil
}

func blsMapG2(in []byte) ([]byte, error) {
	var u bls12381.E2
	if blsCoordinate(&u.A0, in) != nil || blsCoordinate(&u.A1, in[64:]) != nil {
		return nil, errEncoding
	}
	p := bls12381.MapToG2(u)
	return blsG2Out(&p), nil
}

func bls12381Modulus() []byte { return blsfr.Modulus().Bytes() }

// --- The others.

// recoverKey is the precompile ecrecover: hash, v, r, s, 32 bytes each, to an address.
func recoverKey(in []byte) ([]byte, error) {
	var key ecdsa.PublicKey
	r, s := new(big.Int).SetBytes(in[64:96]), new(big.Int).SetBytes(in[96:128])
	if in[63] != 27 && in[63] != 28 {
		return nil, errEncoding
	}
	if err := key.RecoverFrom(in[:32], uint(in[63]-27), r, s); err != nil {
		return nil, err
	}
	bytes := secp256k1G1Bytes(&key.A)
	hash := sha3.NewLegacyKeccak256()
	hash.Write(bytes)
	out := make([]byte, 32)
	copy(out[12:], hash.Sum(nil)[12:])
	return out, nil
}

// modexp is the precompile of EIP-198: three lengths, base, exponent, modulus.
func modexp(in []byte) ([]byte, error) {
	part := func(n int) (x *big.Int) {
		x = new(big.Int).SetBytes(in[:n])
		in = in[n:]
		return x
	}
	base, exponent, modulus := int(part(32).Int64()), int(part(32).Int64()), int(part(32).Int64())
	b, e, m := part(base), part(exponent), part(modulus)
	return b.Exp(b, e, m).FillBytes(make([]byte, modulus)), nil
}

func evmSha256(in []byte) ([]byte, error) {
	hash := sha256.Sum256(in)
	return hash[:], nil
}

func evmRipemd160(in []byte) ([]byte, error) {
	hash := ripemd160.New()
	hash.Write(in)
	return hash.Sum(make([]byte, 12)), nil
}

// --- Inputs; the Rust program makes the same.

func bnPairingInput(w *order) (in []byte) {
	p, q := bn254G1Points(w, w.Size), bn254G2Points(w, w.Size)
	for i := range w.Size {
		// Every second pair takes back the one before.
		if i%2 == 1 {
			p[i].Neg(&p[i-1])
			q[i] = q[i-1]
		}
		in = append(append(in, bn254G1Bytes(&p[i])...), bnG2Bytes(&q[i])...)
	}
	return in
}

func blsPairingInput(w *order) (in []byte) {
	p, q := bls12381G1Points(w, w.Size), bls12381G2Points(w, w.Size)
	for i := range w.Size {
		if i%2 == 1 {
			p[i].Neg(&p[i-1])
			q[i] = q[i-1]
		}
		in = append(append(in, blsG1Out(&p[i])...), blsG2Out(&q[i])...)
	}
	return in
}

func modexpInput(w *order) (in []byte) {
	length := make([]byte, 32)
	length[30], length[31] = byte(w.Size>>8), byte(w.Size)
	for range 3 {
		in = append(in, length...)
	}
	modulus := expand("modulus", w.Seed, 0, w.Size)
	modulus[0] |= 0x80
	modulus[w.Size-1] |= 1
	in = append(in, expand("base", w.Seed, 0, w.Size)...)
	in = append(in, expand("exponent", w.Seed, 0, w.Size)...)
	return append(in, modulus...)
}

func evmPrecompiles(t *table) {
	precompile := func(name, how string, input func(w *order) []byte, run func([]byte) ([]byte, error)) {
		t.add("evm", name, how, func(w *order) (prepared, error) {
			in := input(w)
			answer, err := run(in)
			return prepared{answer, func(n uint64) {
				for ; n > 0; n-- {
					if _, err := run(in); err != nil {
						panic(err)
					}
				}
			}}, err
		})
	}
	t.add("evm", "ecrecover", "ecdsa.PublicKey.RecoverFrom, x/crypto Keccak-256", func(w *order) (prepared, error) {
		given, err := hex.DecodeString(w.Inputs)
		if err != nil || len(given) != 96 {
			return prepared{}, fmt.Errorf("96 bytes of inputs are wanted")
		}
		in := append(append(append([]byte{}, given[:32]...), word(false)...), given[32:]...)
		var answer []byte
		for v := byte(28); v >= 27; v-- {
			in[63] = v
			out, err := recoverKey(in)
			if err != nil {
				return prepared{}, err
			}
			answer = append(answer, out...)
		}
		return prepared{answer, repeatNil(func() error {
			_, err := recoverKey(in)
			return err
		})}, nil
	})
	bnPoints := func(w *order) []byte {
		points := bn254G1Points(w, 2)
		return append(bn254G1Bytes(&points[0]), bn254G1Bytes(&points[1])...)
	}
	precompile("bn254-add", "G1Affine.Add", bnPoints, bnAdd)
	precompile("bn254-mul", "G1Affine.ScalarMultiplication", func(w *order) []byte {
		scalar := bn254Fr(w, "fr", 0)
		bytes := scalar.Bytes()
		return append(bnPoints(w)[:64:64], bytes[:]...)
	}, bnMul)
	precompile("bn254-pairing", "PairingCheck", bnPairingInput, bnPairing)
	precompile("bls12-381-g1add", "G1Affine.Add", func(w *order) []byte {
		points := bls12381G1Points(w, 2)
		return append(blsG1Out(&points[0]), blsG1Out(&points[1])...)
	}, blsG1Add)
	precompile("bls12-381-g2add", "G2Affine.Add", func(w *order) []byte {
		points := bls12381G2Points(w, 2)
		return append(blsG2Out(&points[0]), blsG2Out(&points[1])...)
	}, blsG2Add)
	precompile("bls12-381-g1msm", "G1Affine.MultiExp", func(w *order) (in []byte) {
		for i, p := range bls12381G1Points(w, w.Size) {
			scalar := bls12381Fr(w, "fr", i)
			bytes := scalar.Bytes()
			in = append(append(in, blsG1Out(&p)...), bytes[:]...)
		}
		return in
	}, blsG1Msm)
	precompile("bls12-381-g2msm", "G2Affine.MultiExp", func(w *order) (in []byte) {
		for i, p := range bls12381G2Points(w, w.Size) {
			scalar := bls12381Fr(w, "fr", i)
			bytes := scalar.Bytes()
			in = append(append(in, blsG2Out(&p)...), bytes[:]...)
		}
		return in
	}, blsG2Msm)
	precompile("bls12-381-pairing", "PairingCheck", blsPairingInput, blsPairing)
	precompile("bls12-381-map-fp-to-g1", "MapToG1", func(w *order) []byte {
		u := bls12381Fp(w, "fp", 0)
		return blsPad(nil, &u)
	}, blsMapG1)
	precompile("bls12-381-map-fp2-to-g2", "MapToG2", func(w *order) []byte {
		u := bls12381Fp2(w, "fp2", 0)
		return blsPad(blsPad(nil, &u.A0), &u.A1)
	}, blsMapG2)
	precompile("modexp", "math/big Int.Exp", modexpInput, modexp)
	precompile("sha256", "crypto/sha256", func(w *order) []byte { return expand("data", w.Seed, 0, w.Size) }, evmSha256)
	precompile("ripemd160", "x/crypto/ripemd160", func(w *order) []byte { return expand("data", w.Seed, 0, w.Size) }, evmRipemd160)
	ecdsaVerify(t)
}

// --- Signatures of secp256k1, which come from the other side: compressed key, r and s, message.

func ecdsaVerify(t *table) {
	t.add("secp256k1", "ecdsa-verify", "ecdsa.PublicKey.Verify, one by one", func(w *order) (prepared, error) {
		given, err := hex.DecodeString(w.Inputs)
		if err != nil || len(given) != 129*w.Size {
			return prepared{}, fmt.Errorf("129 bytes of inputs for each signature are wanted")
		}
		verify := func(one []byte) bool {
			var key ecdsa.PublicKey
			if !decompress(&key.A, one[:33]) {
				return false
			}
			ok, err := key.Verify(one[33:97], one[97:129], nil)
			return err == nil && ok
		}
		var answer []byte
		for i := range w.Size {
			answer = append(answer, boolByte(verify(given[129*i:])))
		}
		given[97] ^= 1
		answer = append(answer, boolByte(verify(given)))
		given[97] ^= 1
		return prepared{answer, func(n uint64) {
			for ; n > 0; n-- {
				for i := range w.Size {
					if !verify(given[129*i:]) {
						panic("a valid signature was refused")
					}
				}
			}
		}}, nil
	})
}

func decompress(p *secp256k1.G1Affine, in []byte) bool {
	if p.X.SetBytesCanonical(in[1:33]) != nil || in[0]&^1 != 2 {
		return false
	}
	var cube, seven secpfp.Element
	seven.SetUint64(7)
	cube.Square(&p.X).Mul(&cube, &p.X).Add(&cube, &seven)
	if p.Y.Sqrt(&cube) == nil {
		return false
	}
	bytes := p.Y.Bytes()
	if bytes[31]&1 != in[0]&1 {
		p.Y.Neg(&p.Y)
	}
	return true
}
