// What PyTorch's names of operators call here: functions of torch, methods and properties of tensors, and the few that op_db wraps.
import { torch } from 'tensorfx'
import { Tensor } from 'tensorfx'
import { MissingName, camelCase } from '../python.ts'
import { Absent } from './stored.ts'

type Options = Readonly<Record<string, unknown>>

/** A call by position and by name. */
export type Call = (args: readonly unknown[], options: Options) => unknown

/** Arguments with the options last, if there are any. */
const joined = (args: readonly unknown[], options: Options): readonly unknown[] => (Object.keys(options).length === 0 ? args : [...args, options])

const own = (owner: unknown, name: string): unknown =>
  Object(owner) === owner && name in Object(owner) ? Reflect.get(Object(owner), name) : undefined

/** The function at a path of torch, null if there is none. */
function functionAt(path: string): ((...args: unknown[]) => unknown) | null {
  const value = path.split('.').reduce<unknown>((owner, part) => own(owner, camelCase(part)), torch)
  return typeof value === 'function' ? (value as () => unknown) : null
}

const isTensor = (value: unknown): value is Tensor => value instanceof Tensor

/** The method or property of tensors. */
function memberCall(name: string): Call | null {
  const key = camelCase(name)
  if (!(key in Tensor.prototype)) return null
  return ([self, ...rest], options) => {
    if (!isTensor(self)) throw new MissingName(name)
    const member: unknown = Reflect.get(self, key)
    return typeof member === 'function' ? Reflect.apply(member, self, joined(rest, options)) : member
  }
}

/** The function of torch, or else the method. */
function named(name: string): Call | null {
  const fn = functionAt(name)
  return fn === null ? memberCall(name) : (args, options) => Reflect.apply(fn, undefined, joined(args, options))
}

/** The in-place method of a copy. */
function onCopy(name: string): Call | null {
  const call = memberCall(name)
  return call === null ? null : ([self, ...rest], options) => call([isTensor(self) ? self.clone() : self, ...rest], options)
}

/** What op_db calls with its arguments in another order, or made of them. (A recorded list of numbers is one index.) */
const REARRANGED: Readonly<Record<string, { readonly calls: string; readonly with: (args: readonly unknown[]) => readonly unknown[] }>> = {
  einsum: { calls: 'einsum', with: ([tensors, equation]) => [equation, tensors] },
  polygamma: { calls: 'polygamma', with: ([self, n]) => [n, self] },
  where: { calls: 'where', with: ([self, condition, ...rest]) => [condition, self, ...rest] },
  __getitem__: {
    calls: 'getitem',
    with: ([self, index]) => [self, Array.isArray(index) && index.some((item) => typeof item !== 'number') ? index : [index]],
  },
  svd_lowrank: { calls: 'svd_lowrank', with: ofProduct },
  pca_lowrank: { calls: 'pca_lowrank', with: ofProduct },
  'linalg.pinv.singular': { calls: 'linalg.pinv', with: ofProduct },
}

/** The first two arguments multiplied, the second one transposed. */
function ofProduct([a, b, ...rest]: readonly unknown[]): readonly unknown[] {
  if (!isTensor(a) || !isTensor(b)) throw new TypeError('op_db multiplies two tensors')
  return [a.matmul(b.transpose(-2, -1)), ...rest]
}

/** The functions of Python's reflected operators: `__radd__`. */
const REFLECTED: Readonly<Record<string, string>> = {
  radd: 'add',
  rand: 'bitwise_and',
  rdiv: 'div',
  rmatmul: 'matmul',
  rmod: 'remainder',
  rmul: 'mul',
  ror: 'bitwise_or',
  rpow: 'pow',
  rsub: 'sub',
  rxor: 'bitwise_xor',
}

/** What op_db draws or writes into a copy. */
const DRAWN: ReadonlySet<string> = new Set([
  'cauchy',
  'exponential',
  'geometric',
  'log_normal',
  'normal.in_place',
  'uniform',
  'resize_',
  'resize_as_',
  'zero_',
])

/** Options of PyTorch that have no counterpart here: there is one device and one layout. */
const WITHOUT_EFFECT: Readonly<Record<string, readonly unknown[]>> = {
  device: ['cpu', null],
  layout: ['strided', null],
  pin_memory: [false, null],
  memory_format: ['preserve_format', 'contiguous_format', null],
  non_blocking: [true, false],
}

/** Keyword arguments as an options object. */
export const optionsOf = (keywords: readonly (readonly [string, unknown])[]): Options =>
  Object.fromEntries(keywords.filter(([key, value]) => WITHOUT_EFFECT[key]?.includes(value) !== true).map(([key, value]) => [camelCase(key), value]))

/** How an operator of op_db is called. Null if tensorfx has no such name. */
export function callOf(recorded: string, variant = ''): Call | null {
  // Overloads of aten are functions of torch here.
  const name = /^torch\.ops\.aten\.(\w+)\.\w+$/.exec(recorded)?.[1] ?? recorded
  const full = variant === '' ? name : `${name}.${variant}`
  if (DRAWN.has(full)) return onCopy(name.endsWith('_') ? name : `${name}_`)
  const rearranged = REARRANGED[full] ?? REARRANGED[name]
  if (rearranged !== undefined) {
    const call = named(rearranged.calls)
    return call === null ? null : (args, options) => call(rearranged.with(args), options)
  }
  const reflected = REFLECTED[/^__(\w+)__$/.exec(name)?.[1] ?? '']
  const call = named(reflected ?? name)
  if (call === null) return null
  if (full === 'linalg.lstsq.grad_oriented')
    return (args, options) => {
      const results: unknown = call(args, options)
      return Array.isArray(results) ? results.slice(0, 2) : results
    }
  if (reflected === undefined) return call
  return ([self, other, ...rest], options) => {
    if (!isTensor(self)) throw new Absent('methods of numbers')
    return call([other, self, ...rest], options)
  }
}
