package binlog

// lenenc reads a length-encoded integer and returns what follows it.
func lenenc(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	size := 0
	switch b[0] {
	case 0xfb, 0xff:
		return 0, nil, false
	case 0xfc:
		size = 2
	case 0xfd:
		size = 3
	case 0xfe:
		size = 8
	default:
		return uint64(b[0]), b[1:], true
	}
	if len(b) < 1+size {
		return 0, nil, false
	}
	return fixedInt(b[1 : 1+size]), b[1+size:], true
}

// lenencBytes reads a length-encoded string and returns what follows it.
func lenencBytes(b []byte) (s, rest []byte, ok bool) {
	n, b, ok := lenenc(b)
	if !ok || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// fixedInt reads up to eight bytes, little-endian.
func fixedInt(b []byte) uint64 {
	var n uint64
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}
