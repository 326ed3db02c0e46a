package avro

import "strconv"

// plainer prints a schema for goavro with all that goavro has trouble with left out: defaults, properties, namespaces,
// letters that are not ASCII. Types are named T0, T1 and so on, fields and symbols by their place.
type plainer struct {
	dst   []byte
	names map[*node]string
}

// plain returns the schema for goavro and the names of the types in it.
func plain(n *node) (text string, names map[*node]string) {
	p := plainer{names: map[*node]string{}}
	p.write(n)
	return string(p.dst), p.names
}

func fieldNumber(i int) string { return "f" + strconv.Itoa(i) }

func symbolNumber(i int) string { return "s" + strconv.Itoa(i) }

func (p *plainer) write(n *node) {
	if name, ok := p.names[n]; ok {
		p.dst = appendQuoted(p.dst, name)
		return
	}
	if n.kind.named() {
		name := "T" + strconv.Itoa(len(p.names))
		p.names[n] = name
		p.dst = append(p.dst, `{"type":"`+string(n.kind)+`","name":"`+name+`"`...)
	}
	switch n.kind {
	case kindRecord:
		p.list("fields", len(n.fields), func(i int) {
			p.dst = append(p.dst, `{"name":"`+fieldNumber(i)+`","type":`...)
			p.write(n.fields[i].typ)
			p.dst = append(p.dst, '}')
		})
	case kindEnum:
		p.list("symbols", len(n.symbols), func(i int) { p.dst = appendQuoted(p.dst, symbolNumber(i)) })
	case kindFixed:
		p.dst = append(p.dst, `,"size":`...)
		p.dst = append(strconv.AppendInt(p.dst, n.size, 10), '}')
	case kindArray:
		p.dst = append(p.dst, `{"type":"array","items":`...)
		p.write(n.items)
		p.dst = append(p.dst, '}')
	case kindMap:
		p.dst = append(p.dst, `{"type":"map","values":`...)
		p.write(n.items)
		p.dst = append(p.dst, '}')
	case kindUnion:
		p.dst = append(p.dst, '[')
		for i, b := range n.branches {
			if i > 0 {
				p.dst = append(p.dst, ',')
			}
			p.write(b)
		}
		p.dst = append(p.dst, ']')
	default:
		p.dst = appendQuoted(p.dst, string(n.kind))
	}
}

func (p *plainer) list(name string, n int, write func(i int)) {
	p.dst = append(p.dst, `,"`+name+`":[`...)
	for i := range n {
		if i > 0 {
			p.dst = append(p.dst, ',')
		}
		write(i)
	}
	p.dst = append(p.dst, "]}"...)
}
