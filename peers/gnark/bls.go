package main

import (
	"fmt"
	"math/big"
	"runtime"
	"sync"

	"github.com/consensys/gnark-crypto/ecc"
	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// The scheme with proofs of possession, keys in G1, put together from the library's parts: it has no interface for it.
var blsDst = []byte("BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_")

// blsKeys are secrets, public keys and signatures of as many messages.
type blsKeys struct {
	secrets  []*big.Int
	keys     []curve.G1Affine
	messages [][]byte
	sigs     []curve.G2Affine
}

// newBlsKeys makes them; all sign the first message where same is true.
func newBlsKeys(w *order, n int, same bool) (*blsKeys, error) {
	k := new(blsKeys)
	g, _, _, _ := curve.Generators()
	for i := range n {
		secret := bls12381Scalar(w, "bls", i)
		message := expand("message", w.Seed, uint64(i), 32)
		if same {
			message = expand("message", w.Seed, 0, 32)
		}
		var p curve.G1Jac
		var key curve.G1Affine
		p.ScalarMultiplication(&g, secret)
		key.FromJacobian(&p)
		sig, err := blsSign(message, secret)
		if err != nil {
			return nil, err
		}
		k.secrets, k.keys = append(k.secrets, secret), append(k.keys, key)
		k.messages, k.sigs = append(k.messages, message), append(k.sigs, sig)
	}
	return k, nil
}

func blsSign(message []byte, secret *big.Int) (curve.G2Affine, error) {
	h, err := curve.HashToG2(message, blsDst)
	if err != nil {
		return h, err
	}
	var p curve.G2Jac
	p.FromAffine(&h)
	p.ScalarMultiplication(&p, secret)
	h.FromJacobian(&p)
	return h, nil
}

func blsMinusG1() curve.G1Affine {
	_, _, g, _ := curve.Generators()
	g.Neg(&g)
	return g
}

// blsVerify takes points that are known to be in their groups.
func blsVerify(key *curve.G1Affine, message []byte, sig *curve.G2Affine) bool {
	h, err := curve.HashToG2(message, blsDst)
	if err != nil {
		return false
	}
	minus := blsMinusG1()
	ok, err := curve.PairingCheck([]curve.G1Affine{*key, minus}, []curve.G2Affine{h, *sig})
	return err == nil && ok
}

func blsAggregate(sigs []curve.G2Affine) curve.G2Affine {
	var sum curve.G2Jac
	sum.FromAffine(&sigs[0])
	for i := 1; i < len(sigs); i++ {
		sum.AddMixed(&sigs[i])
	}
	var aggregate curve.G2Affine
	aggregate.FromJacobian(&sum)
	return aggregate
}

func blsAggregateKeys(keys []curve.G1Affine) curve.G1Affine {
	var sum curve.G1Jac
	sum.FromAffine(&keys[0])
	for i := 1; i < len(keys); i++ {
		sum.AddMixed(&keys[i])
	}
	var aggregate curve.G1Affine
	aggregate.FromJacobian(&sum)
	return aggregate
}

// blsBatch verifies all signatures at once, each weighted with 64 bits.
func blsBatch(k *blsKeys, weights []fr.Element, threads int) bool {
	n := len(k.keys)
	parts := min(threads, n)
	millers := make([]curve.GT, parts)
	valid := make([]bool, parts)
	var group sync.WaitGroup
	for part := range parts {
		from, to := part*n/parts, (part+1)*n/parts
		work := func() {
			points := make([]curve.G1Affine, 0, to-from+1)
			hashes := make([]curve.G2Affine, 0, to-from+1)
			var weight big.Int
			for i := from; i < to; i++ {
				var p curve.G1Affine
				p.ScalarMultiplication(&k.keys[i], weights[i].BigInt(&weight))
				h, err := curve.HashToG2(k.messages[i], blsDst)
				if err != nil {
					return
				}
				points, hashes = append(points, p), append(hashes, h)
			}
			var sum curve.G2Affine
			if _, err := sum.MultiExp(k.sigs[from:to], weights[from:to], ecc.MultiExpConfig{NbTasks: 1}); err != nil {
				return
			}
			points, hashes = append(points, blsMinusG1()), append(hashes, sum)
			f, err := curve.MillerLoop(points, hashes)
			millers[part], valid[part] = f, err == nil
		}
		if parts == 1 {
			work()
			continue
		}
		group.Add(1)
		go func() {
			defer group.Done()
			work()
		}()
	}
	group.Wait()
	product := millers[0]
	for part := range parts {
		if !valid[part] {
			return false
		}
		if part > 0 {
			product.Mul(&product, &millers[part])
		}
	}
	result := curve.FinalExponentiation(&product)
	return result.IsOne()
}

// repeatTrue runs a check that must hold.
func repeatTrue(check func() bool) func(uint64) {
	return func(n uint64) {
		for ; n > 0; n-- {
			if !check() {
				panic("what is valid was refused")
			}
		}
	}
}

func blsSignatures(t *table) {
	const name = "bls-signatures"
	t.add(name, "sign", "HashToG2, G2Jac.ScalarMultiplication, variable time", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, 1, false)
		if err != nil {
			return prepared{}, err
		}
		message := expand("message", w.Seed, 0, 32)
		return prepared{bls12381G2Bytes(&k.sigs[0]), func(n uint64) {
			for ; n > 0; n-- {
				message[0]++
				if _, err := blsSign(message, k.secrets[0]); err != nil {
					panic(err)
				}
			}
		}}, nil
	})
	t.add(name, "verify", "HashToG2, PairingCheck; points known to be in their groups", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, 2, false)
		if err != nil {
			return prepared{}, err
		}
		check := func() bool { return blsVerify(&k.keys[0], k.messages[0], &k.sigs[0]) }
		wrong := blsVerify(&k.keys[0], k.messages[1], &k.sigs[0])
		return prepared{[]byte{boolByte(check()), boolByte(wrong)}, repeatTrue(check)}, nil
	})
	t.add(name, "decode-public-key", "G1Affine.SetBytes: decompression and group check", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, 1, false)
		if err != nil {
			return prepared{}, err
		}
		compressed := k.keys[0].Bytes()
		var decoded curve.G1Affine
		check := func() bool {
			_, err := decoded.SetBytes(compressed[:])
			return err == nil
		}
		if !check() {
			return prepared{}, fmt.Errorf("a key that cannot be decoded")
		}
		return prepared{bls12381G1Bytes(&decoded), repeatTrue(check)}, nil
	})
	t.add(name, "decode-signature", "G2Affine.SetBytes: decompression and group check", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, 1, false)
		if err != nil {
			return prepared{}, err
		}
		compressed := k.sigs[0].Bytes()
		var decoded curve.G2Affine
		check := func() bool {
			_, err := decoded.SetBytes(compressed[:])
			return err == nil
		}
		if !check() {
			return prepared{}, fmt.Errorf("a signature that cannot be decoded")
		}
		return prepared{bls12381G2Bytes(&decoded), repeatTrue(check)}, nil
	})
	t.add(name, "aggregate", "G2Jac.AddMixed", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, w.Size, false)
		if err != nil {
			return prepared{}, err
		}
		aggregate := blsAggregate(k.sigs)
		return prepared{bls12381G2Bytes(&aggregate), func(n uint64) {
			for ; n > 0; n-- {
				aggregate = blsAggregate(k.sigs)
			}
		}}, nil
	})
	t.add(name, "fast-aggregate-verify", "G1Jac.AddMixed, HashToG2, PairingCheck", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, w.Size, true)
		if err != nil {
			return prepared{}, err
		}
		aggregate := blsAggregate(k.sigs)
		check := func(message []byte) bool {
			key := blsAggregateKeys(k.keys)
			return blsVerify(&key, message, &aggregate)
		}
		right, wrong := k.messages[0], expand("message", w.Seed, 1, 32)
		return prepared{[]byte{boolByte(check(right)), boolByte(check(wrong))}, repeatTrue(func() bool { return check(right) })}, nil
	})
	t.add(name, "batch-verify", "HashToG2, ScalarMultiplication by 64 bits, G2 MultiExp, MillerLoop", func(w *order) (prepared, error) {
		k, err := newBlsKeys(w, w.Size, false)
		if err != nil {
			return prepared{}, err
		}
		weights := make([]fr.Element, w.Size)
		for i := range weights {
			bytes := expand("weight", w.Seed, uint64(i), 8)
			bytes[7] |= 1
			weights[i].SetBytes(bytes)
		}
		threads := 1
		if w.Threads != 1 {
			threads = runtime.NumCPU()
		}
		check := func() bool { return blsBatch(k, weights, threads) }
		right := check()
		k.messages[0][0] ^= 1
		wrong := check()
		k.messages[0][0] ^= 1
		return prepared{[]byte{boolByte(right), boolByte(wrong)}, repeatTrue(check)}, nil
	})
}
