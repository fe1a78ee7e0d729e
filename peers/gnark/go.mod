module assay/peers/gnark

go 1.26.8

require (
	github.com/consensys/gnark-crypto v0.22.0
	github.com/crate-crypto/go-eth-kzg v1.5.0
	golang.org/x/crypto v0.58.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
)
