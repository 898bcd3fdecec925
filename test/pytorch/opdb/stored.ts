// Reads test/goldens/opdb: what PyTorch's own databases of operators, modules and refused inputs (op_db, module_db, error_inputs) say, recorded.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import type { Tensor } from 'tensorfx'
import { isDType } from '../../../src/kernels/index.ts'
import { tensorFromBytes } from '../../../src/tensor/elements.ts'

export interface StoredTensor {
  readonly T: 1
  readonly dtype: string
  readonly shape: readonly number[]
  readonly off: number
  readonly len: number
  /** Whether it requires grad. */
  readonly g?: boolean
  /** How far PyTorch's float32 is from its float64. */
  readonly e?: number
}

/** A value: a tensor, an integer, a number as text, a dtype, a slice, an ellipsis, a dict, another constant of torch, a list or a plain value. */
export type Stored =
  | StoredTensor
  | { readonly I: number }
  | { readonly N: string }
  | { readonly C: readonly [string, string] }
  | { readonly D: string }
  | { readonly S: readonly [Stored, Stored, Stored] }
  | { readonly E: 1 }
  | { readonly O: readonly (readonly [string, Stored])[] }
  | { readonly X: string }
  | readonly Stored[]
  | string
  | boolean
  | null

type Keywords = Readonly<Record<string, Stored>>

/** A call of an operator. */
export interface OperatorCase {
  readonly dt: string
  readonly args: readonly Stored[]
  readonly kw: Keywords
  /** Whether only shapes were recorded. */
  readonly random: boolean
  readonly out: readonly StoredTensor[]
  readonly grads?: readonly (StoredTensor | null)[]
}

/** A module, and a call of it. */
export interface ModuleCase {
  readonly mode: boolean
  readonly ctor: readonly Stored[]
  readonly ctorkw: Keywords
  readonly args: readonly Stored[]
  readonly kw: Keywords
  readonly state: Readonly<Record<string, StoredTensor>>
  readonly random: boolean
  readonly out: readonly StoredTensor[]
  /** Buffers after the call. */
  readonly after: Readonly<Record<string, StoredTensor>>
  readonly grads: readonly (StoredTensor | null)[]
  readonly pgrads: Readonly<Record<string, StoredTensor | null>>
}

/** A call that PyTorch refuses; `torch` is its error, or `ok` of one that it has come to take. */
export interface RefusedCase {
  readonly args: readonly Stored[]
  readonly kw: Keywords
  readonly torch: string
}

/** One operator or module. */
export interface Entry<Case> {
  readonly name: string
  readonly variant?: string
  readonly cases: readonly Case[]
}

/** One file of the database. */
export interface Database<Case> {
  readonly entries: readonly Entry<Case>[]
  /** The tensor that a record stands for, new at each call. */
  readonly tensor: (stored: StoredTensor) => Tensor
}

/** What a record needs that there is not at all: complex tensors, or Python's methods of numbers. */
export class Absent extends Error {}

const path = (name: string): string => fileURLToPath(new URL(`../../goldens/${name}`, import.meta.url))

export const readDatabase = <Case>(name: 'ops' | 'mods' | 'errs'): Database<Case> => readFiles(`opdb/${name}.jsonl.gz`, `opdb/${name}.bin.gz`)

/** A database of a list of entries and of the bytes of their tensors. */
export function readFiles<Case>(list: string, data: string): Database<Case> {
  const entries = gunzipSync(readFileSync(path(list)))
    .toString('utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry<Case>)
  const bytes = gunzipSync(readFileSync(path(data)))
  return {
    entries,
    tensor: ({ dtype, shape, off, len }) => {
      if (!isDType(dtype)) throw new Absent(`tensors of ${dtype}`)
      return tensorFromBytes(new Uint8Array(bytes.subarray(off, off + len)), shape, dtype)
    },
  }
}

/** A value as a call of tensorfx takes it; tensors through `tensor`. */
export function decode(value: Stored, tensor: (stored: StoredTensor) => unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return (value as readonly Stored[]).map((item) => decode(item, tensor))
  if ('T' in value) return tensor(value)
  if ('I' in value) return value.I
  if ('N' in value) return Number(value.N.replace('inf', 'Infinity'))
  if ('D' in value) return value.D
  if ('C' in value) return { re: Number(value.C[0]), im: Number(value.C[1]) }
  if ('E' in value) return '...'
  if ('S' in value) {
    const [start, stop, step] = value.S.map((part) => decode(part, tensor))
    return { start, stop, step }
  }
  if ('O' in value) return Object.fromEntries(value.O.map(([key, item]) => [key, decode(item, tensor)]))
  if ('X' in value) return value.X.replace('torch.', '')
  throw new Error(`unknown record ${JSON.stringify(value)}`)
}
