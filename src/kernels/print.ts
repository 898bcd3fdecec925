// The canonical text of a kernel: for people, and as the key under which compiled kernels are cached.
import type { Expr, Index, Kernel, Size, Stmt } from './loopIr.ts'

const size = (s: Size): string => (typeof s === 'number' ? String(s) : s.name)

function index({ base, terms, dynamic }: Index): string {
  const parts = [
    ...(base === 0 ? [] : [size(base)]),
    ...terms.map((t) => (t.stride === 1 ? t.loop.name : `${t.loop.name} * ${size(t.stride)}`)),
    ...dynamic.map((d) => (d.stride === 1 ? expr(d.value) : `${expr(d.value)} * ${size(d.stride)}`)),
  ]
  return parts.length === 0 ? '0' : parts.join(' + ')
}

const INFIX: Readonly<Record<string, string>> = { add: '+', sub: '-', mul: '*', div: '/', eq: '==', ne: '!=', lt: '<', le: '<=', gt: '>', ge: '>=', and: '&&', or: '||' }

function expr(e: Expr): string {
  switch (e.kind) {
    case 'const':
      return `${Object.is(e.value, -0) ? '-0' : e.value}${e.dtype === 'float32' ? 'f' : e.dtype === 'float64' ? 'd' : e.dtype === 'bool' ? 'b' : ''}`
    case 'scalar':
      return e.param.name
    case 'iota':
      return e.loop.name
    case 'sizeOf':
      return e.size.name
    case 'load': {
      const text = `${e.buffer.name}[${index(e.index)}]`
      return e.mask === null ? text : `(${expr(e.mask)} ? ${text} : 0)`
    }
    case 'cast':
      return `${e.dtype}(${expr(e.value)})`
    case 'local':
      return e.local.name
    default: {
      const infix = INFIX[e.op]
      return infix === undefined ? `${e.op}(${e.args.map(expr).join(', ')})` : `(${e.args.map(expr).join(` ${infix} `)})`
    }
  }
}

function stmt(s: Stmt, indent: string): string {
  switch (s.kind) {
    case 'for':
      return `${indent}for ${s.loop.name} < ${size(s.loop.extent)}${s.mode === 'simd' ? ' simd' : ''} {\n${s.body.map((b) => stmt(b, `${indent}  `)).join('\n')}\n${indent}}`
    case 'declare':
      return `${indent}${s.local.dtype} ${s.local.name} = ${expr(s.init)}`
    case 'assign':
      return `${indent}${s.local.name} = ${expr(s.value)}`
    case 'accumulate':
      return `${indent}${s.local.name} ${s.combine}= ${expr(s.value)}`
    default:
      return `${indent}${s.buffer.name}[${index(s.index)}] ${s.combine === null ? '' : s.combine}= ${expr(s.value)}`
  }
}

/** The kernel as readable text; two kernels with the same text compute the same. Shared expressions are written out at each use. */
export function printKernel(kernel: Kernel): string {
  const params = kernel.params.map((p) => (p.kind === 'buffer' ? `${p.access === 'read' ? 'in' : p.access === 'write' ? 'out' : 'inout'} ${p.dtype} ${p.name}[]` : p.kind === 'size' ? `size ${p.name}` : `${p.dtype} ${p.name}`))
  return `kernel ${kernel.name}(${params.join(', ')}) {\n${kernel.body.map((s) => stmt(s, '  ')).join('\n')}\n}`
}
