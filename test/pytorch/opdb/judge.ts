// Runs one recorded call and says how it went: PyTorch is the judge.
import { compile, torch } from 'tensorfx'
import { Tensor, TensorfxError } from 'tensorfx'
import { isDType } from '../../../src/kernels/index.ts'
import { isRefuted } from '../derivative.ts'
import type { Shift } from '../derivative.ts'
import { MissingName, camelCase } from '../python.ts'
import { callOf, optionsOf } from './calls.ts'
import { Absent, decode } from './stored.ts'
import type { Database, Entry, ModuleCase, OperatorCase, RefusedCase, Stored, StoredTensor } from './stored.ts'

/**
 * How a case ended. `wrong`: other values, shapes or gradients; `refuted`: PyTorch's recorded gradient is not the derivative, ours is; `dtype`: only the dtype is another one; `refused`: a clear error; `unknown`: an argument that
 * we do not have; `raw`: an error from the inside; `accepted`: no error where PyTorch has one; `missing`: no such name; `absent`: needs complex or sparse tensors, or calls a method of Python's numbers.
 */
export type Kind = 'agree' | 'wrong' | 'refuted' | 'dtype' | 'refused' | 'unknown' | 'raw' | 'accepted' | 'missing' | 'absent'

export interface Verdict {
  readonly kind: Kind
  readonly why: string
}

const AGREE: Verdict = { kind: 'agree', why: '' }

/** A difference from what PyTorch gave. */
class Difference extends Error {
  readonly kind: Kind
  constructor(kind: Kind, message: string) {
    super(message)
    this.kind = kind
  }
}

const UNKNOWN = /unknown option|arguments given but it takes|was given twice/

/** What an error that a call threw says of it. */
function verdictOf(error: unknown): Verdict {
  if (error instanceof Difference) return { kind: error.kind, why: error.message }
  if (error instanceof MissingName) return { kind: 'missing', why: error.message }
  if (error instanceof Absent) return { kind: 'absent', why: error.message }
  const why = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  if (!(error instanceof TensorfxError) || error.code === 'TFX_INTERNAL') return { kind: 'raw', why }
  return { kind: UNKNOWN.test(error.message) ? 'unknown' : 'refused', why }
}

/** A result that is a tensor, a number or a boolean. */
type Value = Tensor | number | boolean

/** The values of a result in order. */
function valuesIn(result: unknown): readonly Value[] {
  if (result instanceof Tensor || typeof result === 'boolean' || typeof result === 'number') return [result]
  return Array.isArray(result) ? result.flatMap(valuesIn) : []
}

/** A number has the dtype that is asked for: JavaScript has one type of numbers. */
const asTensor = (value: Value, dtype: string): Tensor =>
  value instanceof Tensor ? value : typeof value === 'boolean' || !isDType(dtype) ? torch.tensor(value) : torch.tensor(value, { dtype })

const numbers = (t: Tensor): ArrayLike<number> =>
  t.dtype === 'int64' ? Array.from(t.toBigIntArray(), Number) : (t.toTypedArray() as ArrayLike<number>)
const isFloating = (dtype: string): boolean => /float/.test(dtype)

/** The recorded tolerances: relative, and five times the error that PyTorch's float32 has itself. */
const relative = (dtype: string): number => (dtype === 'float16' ? 2e-3 : isFloating(dtype) ? 1e-4 : 0)

function compareValues(actual: Tensor, wanted: Tensor, { e = 0, dtype }: StoredTensor, what: string, loosest: string): void {
  const [got, want] = [numbers(actual.detach()), numbers(wanted)]
  const tolerance = Math.max(relative(dtype), relative(loosest))
  for (let i = 0; i < want.length; i++) {
    const [a, b] = [Number(got[i]), Number(want[i])]
    const close = Number.isFinite(b) ? Math.abs(a - b) <= tolerance * Math.abs(b) + 5 * e + (tolerance > 0 ? 1e-6 : 0) : Object.is(a, b)
    if (!close) throw new Difference('wrong', `${what}[${i}]: ${a} instead of ${b}`)
  }
}

interface Wanted {
  readonly stored: StoredTensor
  readonly tensor: Tensor
}

/** Compares results with the recorded ones: number, shapes, values, then dtypes. */
function compareAll(values: readonly Value[], wanted: readonly Wanted[], what: string, shapesOnly: boolean, loosest = ''): readonly Tensor[] {
  if (values.length !== wanted.length) throw new Difference('wrong', `${values.length} ${what}s instead of ${wanted.length}`)
  const results = values.map((value, k) => asTensor(value, wanted[k]?.stored.dtype ?? ''))
  results.forEach((actual, k) => {
    const one = wanted[k]
    if (one === undefined) return
    const name = results.length === 1 ? what : `${what} ${k}`
    if (actual.shape.join() !== one.tensor.shape.join())
      throw new Difference('wrong', `${name}: shape [${actual.shape.join()}] instead of [${one.tensor.shape.join()}]`)
    if (!shapesOnly) compareValues(actual, one.tensor, one.stored, name, loosest)
  })
  results.forEach((actual, k) => {
    const dtype = wanted[k]?.stored.dtype ?? actual.dtype
    if (actual.dtype !== dtype) throw new Difference('dtype', `${what} ${k}: ${actual.dtype} instead of ${dtype}`)
  })
  return results
}

/** The sum that the recorded gradients are of: element i of result k has the weight cos(0.7 i + k + 1). */
function lossOf(results: readonly Tensor[]): Tensor | null {
  return results.reduce<Tensor | null>((sum, out, k) => {
    if ((out.dtype !== 'float32' && out.dtype !== 'float64') || !out.requiresGrad) return sum
    const weights = torch
      .tensor(Float64Array.from({ length: out.numel }, (_, i) => Math.cos(0.7 * i + k + 1)))
      .to(out.dtype)
      .view(out.shape)
    const term = out.mul(weights).sum()
    return sum === null ? term : sum.add(term)
  }, null)
}

/** Decodes arguments, and collects the tensors among them. */
class Inputs {
  readonly tensors: Tensor[] = []
  readonly leaves: Tensor[] = []
  readonly #database: Pick<Database<unknown>, 'tensor'>

  constructor(database: Pick<Database<unknown>, 'tensor'>) {
    this.#database = database
  }

  decode(value: Stored): unknown {
    return decode(value, (stored) => {
      const tensor = this.#database.tensor(stored)
      if (stored.g === true) this.leaves.push(tensor.requiresGrad_())
      this.tensors.push(tensor)
      return tensor
    })
  }

  keywords(keywords: Readonly<Record<string, Stored>>): readonly (readonly [string, unknown])[] {
    return Object.entries(keywords).map(([key, value]) => [key, this.decode(value)])
  }
}

/** Replaces tensors in arguments: what a compiled call gets as its inputs. */
function replace(value: unknown, by: ReadonlyMap<Tensor, Tensor>): unknown {
  if (value instanceof Tensor) return by.get(value) ?? value
  if (Array.isArray(value)) return value.map((item) => replace(item, by))
  return value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replace(item, by)]))
    : value
}

/** The results of `call`, compiled or not. */
function run(
  call: (args: readonly unknown[], options: Readonly<Record<string, unknown>>) => unknown,
  args: readonly unknown[],
  options: Readonly<Record<string, unknown>>,
  inputs: Inputs,
  compiled: boolean,
): readonly Value[] {
  if (!compiled) return valuesIn(call(args, options))
  const fn = compile((...given: Tensor[]) => {
    const by = new Map(inputs.tensors.map((tensor, i) => [tensor, given[i] ?? tensor]))
    return call(replace(args, by) as readonly unknown[], replace(options, by) as Readonly<Record<string, unknown>>)
  })
  return valuesIn(fn(...inputs.tensors))
}

/** What PyTorch draws or leaves uninitialized, also where values are recorded. */
const DRAWN = /^(cauchy|exponential|geometric|log_normal|normal|uniform|rand\w*|bernoulli|multinomial|(new_)?empty\w*|resize_)$/
const DRAWN_IN_TRAINING = /dropout|rrelu|scaled_dot_product_attention/

/** Whether only shapes say something. */
function isDrawn({ name }: Entry<unknown>, { kw, random }: OperatorCase): boolean {
  // Without a matrix of the rank q, what is drawn shows in the approximation.
  if (random || DRAWN.test(name) || (name === 'svd_lowrank' && kw['M'] !== null)) return true
  const { p, dropout_p: dropoutP, training } = Object.fromEntries(Object.entries(kw).map(([key, value]) => [key, decode(value, () => null)]))
  if (!DRAWN_IN_TRAINING.test(name) || name === 'native_dropout_backward') return false
  return name.includes('attention')
    ? dropoutP !== 0 && dropoutP !== undefined
    : p !== 0 && p !== 1 && training !== false && (training === true || name !== 'nn.functional.rrelu')
}

/** The position of `dim` among the arguments of operators whose indices may be those of any of equal elements. */
const AMONG_EQUALS: Readonly<Record<string, number>> = { sort: 1, argsort: 1, mode: 1, median: 1, nanmedian: 1, topk: 2, kthvalue: 2 }

/** Results with the recorded indices where ours point to equal elements. The second value: whether all were the recorded ones already. */
function amongEquals(
  values: readonly Value[],
  wanted: readonly Wanted[],
  { name }: Entry<unknown>,
  args: readonly unknown[],
  options: Readonly<Record<string, unknown>>,
): readonly [readonly Value[], boolean] {
  const at = AMONG_EQUALS[name]
  const [self] = args
  if (at === undefined || !(self instanceof Tensor) || self.ndim === 0) return [values, true]
  const dim = Number(options['dim'] ?? args[at] ?? -1)
  const elements = (indices: Tensor): string =>
    Array.from(numbers(torch.gather(self.detach(), dim, indices.ndim < self.ndim ? indices.unsqueeze(dim) : indices))).join()
  let same = true
  const adjusted = values.map((value, k) => {
    const record = wanted[k]
    if (!(value instanceof Tensor) || value.dtype !== 'int64' || record === undefined || value.shape.join() !== record.tensor.shape.join())
      return value
    if ((k === 0) !== (name === 'argsort') || value.numel === 0 || Array.from(numbers(value)).join() === Array.from(numbers(record.tensor)).join())
      return value
    same = false
    return elements(value) === elements(record.tensor) ? record.tensor : value
  })
  return [adjusted, same]
}

/** Which dimension of the results counts singular vectors. Their signs are free: a vector that points the other way is turned around. */
const VECTORS: Readonly<Record<string, readonly [number, number]>> = { svd: [-1, -1], 'linalg.svd': [-1, -2] }

function withSigns(values: readonly Value[], wanted: readonly Wanted[], { name }: Entry<unknown>): readonly Value[] {
  const dims = VECTORS[name]
  const [u, s, v] = values
  const record = wanted[0]?.tensor
  if (dims === undefined || !(u instanceof Tensor) || !(v instanceof Tensor) || !(s instanceof Tensor) || record === undefined) return values
  if (u.shape.join() !== record.shape.join() || u.numel === 0) return values
  const count = s.shape.at(-1) ?? 0
  const signs = u.detach().mul(record).narrow(-1, 0, count).sum(-2, true).sign()
  // The vectors of singular values that are not there may be any basis of their space, and have no gradient.
  const turned = (t: Tensor, dim: number, recorded: Tensor | undefined): Tensor => {
    const own = t.narrow(dim, 0, count).mul(dim === -1 ? signs : signs.transpose(-1, -2))
    const others = (t.shape.at(dim) ?? 0) - count
    return others === 0 || recorded === undefined ? own : torch.cat([own, recorded.narrow(dim, count, others)], dim)
  }
  return [turned(u, dims[0], record), s, turned(v, dims[1], wanted[2]?.tensor)]
}

export function judgeOperator(database: Database<OperatorCase>, entry: Entry<OperatorCase>, one: OperatorCase, compiled: boolean): Verdict {
  const call = callOf(entry.name, entry.variant)
  if (call === null) return { kind: 'missing', why: `no ${entry.name}` }
  try {
    torch.manualSeed(0)
    const inputs = new Inputs(database)
    const args = one.args.map((arg) => inputs.decode(arg))
    const options = optionsOf(inputs.keywords(one.kw))
    const random = isDrawn(entry, one)
    const wanted = one.out.map((stored) => ({ stored, tensor: database.tensor(stored) }))
    const values = withSigns(run(call, args, options, inputs, compiled), wanted, entry)
    const [adjusted, same] = amongEquals(values, wanted, entry, args, options)
    const results = compareAll(adjusted, wanted, 'output', random, one.dt === 'float16' ? 'float16' : '')
    if (one.grads === undefined || random || !same) return AGREE
    return judgeGradients(database, entry, one, results, inputs.leaves)
  } catch (error) {
    return verdictOf(error)
  }
}

/** The gradients against the recorded ones, and where they differ, both against the derivative. */
function judgeGradients(
  database: Pick<Database<unknown>, 'tensor'>,
  entry: Entry<OperatorCase>,
  { grads = [], ...one }: OperatorCase,
  results: readonly Tensor[],
  leaves: readonly Tensor[],
): Verdict {
  try {
    checkGradients(database, results, leaves, grads)
    return AGREE
  } catch (error) {
    const verdict = verdictOf(error)
    if (verdict.kind !== 'wrong') return verdict
    const ours = leaves.map(({ grad, numel }) => (grad === null ? new Float64Array(numel) : numbers(grad)))
    const recorded = grads.map((stored) => (stored === null ? [] : numbers(database.tensor(stored))))
    return { ...verdict, kind: isRefuted(recorded, ours, (shift) => lossAt(database, entry, one, shift)) ? 'refuted' : 'wrong' }
  }
}

/** The loss of a call in float64, with one number of its inputs moved. */
function lossAt(database: Pick<Database<unknown>, 'tensor'>, entry: Entry<OperatorCase>, one: OperatorCase, { leaf, element, by }: Shift): number {
  const inputs = new Inputs({
    tensor: (stored) => {
      const tensor = database.tensor(stored)
      return tensor.dtype === 'float32' ? tensor.to('float64') : tensor
    },
  })
  const args = one.args.map((arg) => inputs.decode(arg))
  const options = optionsOf(inputs.keywords(one.kw))
  inputs.leaves[leaf]?.detach().view(-1).narrow(0, element, 1).add_(by)
  const results = valuesIn(callOf(entry.name, entry.variant)?.(args, options)).map((value) => asTensor(value, 'float64'))
  return Number(lossOf(results)?.item() ?? NaN)
}

function checkGradients(
  database: Pick<Database<unknown>, 'tensor'>,
  results: readonly Tensor[],
  leaves: readonly Tensor[],
  grads: readonly (StoredTensor | null)[],
): void {
  if (grads.length !== leaves.length) throw new Error(`${grads.length} gradients recorded of ${leaves.length} tensors`)
  const loss = lossOf(results)
  if (loss === null) {
    if (grads.some((grad) => grad !== null)) throw new Difference('wrong', 'no output has a gradient')
    return
  }
  loss.backward()
  leaves.forEach((leaf, k) => compareGradient(database, leaf.grad ?? null, grads[k] ?? null, `gradient ${k}`))
}

/** Compares a gradient; one that is missing is zero. */
function compareGradient(database: Pick<Database<unknown>, 'tensor'>, grad: Tensor | null, stored: StoredTensor | null, what: string): void {
  if (stored === null) {
    if (grad !== null && Array.from(numbers(grad)).some((value) => value !== 0)) throw new Difference('wrong', `${what}: there should be none`)
    return
  }
  const wanted = database.tensor(stored)
  compareAll([grad ?? torch.zerosLike(wanted)], [{ stored, tensor: wanted }], what, false)
}

export function judgeRefused(database: Database<RefusedCase>, entry: Entry<RefusedCase>, one: RefusedCase, compiled: boolean): Verdict {
  const call = callOf(entry.name, entry.variant)
  if (call === null) return { kind: 'missing', why: `no ${entry.name}` }
  try {
    const inputs = new Inputs(database)
    const args = one.args.map((arg) => inputs.decode(arg))
    run(call, args, optionsOf(inputs.keywords(one.kw)), inputs, compiled)
  } catch (error) {
    const { kind, why } = verdictOf(error)
    return kind === 'refused' || kind === 'unknown' ? (one.torch === 'ok' ? { kind: 'refused', why } : AGREE) : { kind, why }
  }
  return one.torch === 'ok' ? AGREE : { kind: 'accepted', why: one.torch }
}

interface AnyModule {
  (...args: unknown[]): unknown
  loadStateDict: (state: ReadonlyMap<string, Tensor>) => unknown
  train: (mode: boolean) => unknown
  namedParameters: () => Iterable<readonly [string, Tensor]>
  stateDict: () => ReadonlyMap<string, Tensor>
}

const ours = (name: string): string => name.split('.').map(camelCase).join('.')

export function judgeModule(database: Database<ModuleCase>, entry: Entry<ModuleCase>, one: ModuleCase, compiled: boolean): Verdict {
  if (!(entry.name in torch.nn)) return { kind: 'missing', why: `no nn.${entry.name}` }
  try {
    torch.manualSeed(0)
    const made = new Inputs(database)
    const ctor = one.ctor.map((arg) => made.decode(arg))
    const settings = optionsOf(made.keywords(one.ctorkw))
    const inputs = new Inputs(database)
    const args = one.args.map((arg) => inputs.decode(arg))
    const options = optionsOf(inputs.keywords(one.kw))
    const module = Reflect.construct(
      Reflect.get(torch.nn, entry.name) as new () => AnyModule,
      Object.keys(settings).length === 0 ? ctor : [...ctor, settings],
    ) as AnyModule
    if (Object.keys(one.state).length > 0)
      module.loadStateDict(new Map(Object.entries(one.state).map(([name, stored]) => [name, database.tensor(stored)])))
    module.train(one.mode)
    const call = (given: readonly unknown[], named: Readonly<Record<string, unknown>>): unknown =>
      Reflect.apply(module, undefined, Object.keys(named).length === 0 ? given : [...given, named])
    const wanted = one.out.map((stored) => ({ stored, tensor: database.tensor(stored) }))
    const results = compareAll(run(call, args, options, inputs, compiled), wanted, 'output', one.random)
    const state = module.stateDict()
    for (const [name, stored] of Object.entries(one.after)) {
      const after = state.get(name) ?? state.get(ours(name))
      if (after === undefined) throw new Difference('wrong', `the state has no ${name}`)
      compareAll([after], [{ stored, tensor: database.tensor(stored) }], `${name} after the call`, false)
    }
    if (one.random) return AGREE
    checkGradients(database, results, inputs.leaves, one.grads)
    const parameters = new Map(module.namedParameters())
    for (const [name, stored] of Object.entries(one.pgrads)) {
      const parameter = parameters.get(name) ?? parameters.get(ours(name))
      if (parameter === undefined) throw new Difference('wrong', `there is no parameter ${name}`)
      compareGradient(database, parameter.grad ?? null, stored, `gradient of ${name}`)
    }
    return AGREE
  } catch (error) {
    return verdictOf(error)
  }
}
