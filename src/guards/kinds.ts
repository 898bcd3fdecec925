// What the results of a recorded call depend on besides its arguments' data: the one list of kinds of state. compile compares some of them where its program meets them; what answers a
// call without running its program (aotFunction, skipReplay, a cache of makeFx's graphs) compares all of them, see guards.ts. A kind that is added here is compared by all of these,
// named in their reports, listed in the guide, and demands a planted change in test/guards.
import { FunctionNode, OpNode, anomaly, isGradEnabled } from '../autograd/index.ts'
import type { GradNode } from '../autograd/index.ts'
import { dispatchState, isDetached, isViewOfDetached } from '../dispatch/index.ts'
import type { DType } from '../kernels/index.ts'
import { codeVersion, hooksOf } from '../module/index.ts'
import type { Hook, Module } from '../module/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { isFunction, isObject, valueText } from '../protocol/index.ts'
import { Tensor, defaultGenerator, getDefaultDtype, sameShape, withDefaultDtype } from '../tensor/index.ts'
import type { GeneratorState } from '../tensor/index.ts'

/**
 * When compile, which runs the program at every call, compares a kind of state:
 * - `call`: at the call, to choose among what was recorded;
 * - `met`: when a tensor is met, an argument at the call, any other one at the first operator that gets it;
 * - `operator`: at every operator;
 * - `segment`: at every operator too, and a change ends the graph, since a graph belongs to one value;
 * - `tape`: when a backward may start from the results;
 * - `program`: never, since what the program does with it shows in the operators that it calls;
 * - `input`: never, since the graph takes it as an input.
 */
export type Moment = 'call' | 'met' | 'operator' | 'segment' | 'tape' | 'program' | 'input'

/** A kind of state of an `S`: of the process (null), a tensor, a module, ….  */
export interface StateKind<S, V = unknown> {
  /** What it is called, in reports and in the guide. */
  readonly name: string
  readonly compile: Moment
  read(of: S): V
  /** Whether `of` still has a value; default: whether it is the same one. */
  agrees?(of: S, value: V): boolean
  /** A text that is the same for equal values. */
  key(of: S): string
  /** A value in a report. */
  show(value: V): string
  /** What has changed, after the name of what has it: 'had dtype float32, now has float64'. */
  change(was: V, is: V): string
}

/** A kind whose values graphs belong to (see {@link Moment}, `segment`): how to run code under one of them, and the short name of the graph break where it changes. */
export interface SegmentKind<V = unknown> extends StateKind<null, V> {
  readonly code: string
  within<T>(value: V, fn: () => T): T
}

const onOff = (on: boolean): string => (on ? 'on' : 'off')

const wasIs = <V>(name: string, show: (value: V) => string) => ({
  show: (value: V): string => `${name} ${show(value)}`,
  change: (was: V, is: V): string => `${name} was ${show(was)}, is now ${show(is)}`,
})

const hadHas = <V>(name: string, show: (value: V) => string) => ({
  show: (value: V): string => `${name} ${show(value)}`,
  change: (was: V, is: V): string => `had ${name} ${show(was)}, now has ${show(is)}`,
})

const listText = (values: readonly number[]): string => `[${values.join(', ')}]`

const identities = new WeakMap<object, number>()
let objects = 0

/** A number by which an object is known. */
function identityOf(value: object): number {
  const known = identities.get(value) ?? objects++
  identities.set(value, known)
  return known
}

// ---- of the process ----

const gradMode: StateKind<null, boolean> = {
  name: 'the grad mode',
  compile: 'call',
  read: isGradEnabled,
  key: () => (isGradEnabled() ? 'g' : ''),
  ...wasIs('the grad mode', onOff),
}

const recording: StateKind<null, boolean> = {
  name: 'whether the operator is recorded for gradients',
  compile: 'operator',
  read: () => dispatchState.recording,
  key: () => String(dispatchState.recording),
  show: (value) => (value ? 'with gradients' : 'without gradients'),
  change: (was, is) => `was called ${was ? 'with' : 'without'} gradients, is now called ${is ? 'with' : 'without'}`,
}

const defaultDtype: SegmentKind<DType> = {
  name: 'the default dtype',
  code: 'defaultDtype',
  compile: 'segment',
  read: getDefaultDtype,
  key: getDefaultDtype,
  ...wasIs<DType>('the default dtype', String),
  within: withDefaultDtype,
}

const anomalyMode: StateKind<null, boolean> = {
  name: 'anomaly mode',
  compile: 'program',
  read: () => anomaly.enabled,
  key: () => (anomaly.enabled ? 'a' : ''),
  ...wasIs('anomaly mode', onOff),
}

/** Of the process, at a call. */
export const processState: readonly StateKind<null>[] = [gradMode, defaultDtype, anomalyMode]
/** Those by which compile chooses among what it has recorded. */
export const callState: readonly StateKind<null>[] = processState.filter((kind) => kind.compile === 'call')
/** Of the process, at an operator. */
export const operatorState: readonly StateKind<null>[] = [recording]
/** Those to which graphs belong. */
export const segmentState: readonly SegmentKind[] = [defaultDtype]

// ---- of tensors: arguments, and tensors from outside ----

const dtype: StateKind<Tensor, DType> = {
  name: 'the dtype',
  compile: 'met',
  read: (tensor) => tensor.dtype,
  key: (tensor) => tensor.dtype,
  show: String,
  change: (was, is) => `had dtype ${was}, now has ${is}`,
}

const requiresGrad: StateKind<Tensor, boolean> = {
  name: 'whether it requires grad',
  compile: 'met',
  read: (tensor) => tensor.requiresGrad,
  key: (tensor) => (tensor.requiresGrad ? 'g' : ''),
  show: (value) => (value ? 'requires grad' : 'does not require grad'),
  change: (_, is) => (is ? 'now requires grad' : 'no longer requires grad'),
}

const shape: StateKind<Tensor, readonly number[]> = {
  name: 'the shape',
  compile: 'met',
  read: (tensor) => tensor.sizes,
  agrees: (tensor, value) => sameShape(tensor.sizes, value),
  key: (tensor) => `[${tensor.sizes.join()}]`,
  ...hadHas('shape', listText),
}

const strides: StateKind<Tensor, readonly number[]> = {
  name: 'the strides',
  compile: 'met',
  read: (tensor) => tensor.steps,
  agrees: (tensor, value) => sameShape(tensor.steps, value),
  key: (tensor) => (tensor.contiguousLayout ? '' : tensor.steps.join()),
  ...hadHas('strides', listText),
}

const isLeaf: StateKind<Tensor, boolean> = {
  name: 'whether it is a leaf',
  compile: 'program',
  read: (tensor) => tensor.isLeaf,
  key: (tensor) => (tensor.isLeaf ? '' : 'n'),
  show: (value) => (value ? 'a leaf' : 'no leaf'),
  change: (_, is) => (is ? 'is a leaf now' : 'is no leaf any more'),
}

/** What a write that is recorded gives a history, by the letter of its key. */
const HISTORY_OWNERS = {
  '': 'itself',
  v: 'the tensor that it is a view of',
  d: 'itself only, since it is detached',
  n: 'nothing, since it was made inside noGrad',
}

export function historyOwnerOf(tensor: Tensor): keyof typeof HISTORY_OWNERS {
  if (tensor.viewBase === null) return ''
  if (isDetached(tensor)) return 'd'
  return tensor.ownHistory === null || isViewOfDetached(tensor) ? 'n' : 'v'
}

const historyOwner: StateKind<Tensor, keyof typeof HISTORY_OWNERS> = {
  name: 'what a write to it gives a history',
  compile: 'program',
  read: historyOwnerOf,
  key: historyOwnerOf,
  show: (owner) => HISTORY_OWNERS[owner],
  change: (was, is) => `gave a history to ${HISTORY_OWNERS[was]}, now to ${HISTORY_OWNERS[is]}`,
}

const memory: StateKind<Tensor, object | null> = {
  name: 'the memory of a tensor from outside',
  compile: 'operator',
  read: (tensor) => tensor.storage,
  key: (tensor) => (tensor.storage === null ? '' : `#${identityOf(tensor.storage)}`),
  show: () => 'its memory',
  change: () => 'has other memory now',
}

export const tensorState: readonly StateKind<Tensor>[] = [dtype, requiresGrad, shape, strides, isLeaf, historyOwner]
/** Of a tensor from outside. */
export const outerState: readonly StateKind<Tensor>[] = [...tensorState, memory]
const isMet = (kind: StateKind<Tensor>): boolean => kind.compile === 'met'
/** Those that compile compares by itself when it meets a tensor, and the others, of arguments and of tensors from outside. */
export const metTensorState: readonly StateKind<Tensor>[] = tensorState.filter(isMet)
export const otherTensorState: readonly StateKind<Tensor>[] = tensorState.filter((kind) => !isMet(kind))
export const otherOuterState: readonly StateKind<Tensor>[] = outerState.filter((kind) => !isMet(kind))

// ---- of arguments together ----

/** The tensors that a call used. */
export interface Together {
  readonly args: readonly Tensor[]
  /** Those that are no arguments. */
  readonly outer: readonly Tensor[]
}

const sharesMemory = (a: Tensor, b: Tensor | undefined): boolean => a === b || (a.storage !== null && a.storage === b?.storage)

const rootOf = (tensor: Tensor | undefined): Tensor | undefined => tensor?.viewBase ?? tensor

/** Calls `found` for each pair of tensors, the second one an argument, that are the same one or share memory. Ends, with false, when `found` returns false. */
function everyPair({ args, outer }: Together, found: (other: Tensor | undefined, position: number, arg: Tensor, i: number) => boolean): boolean {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg === undefined) continue
    for (let k = 0; k < outer.length; k++) if (sharesMemory(arg, outer[k]) && !found(outer[k], -1 - k, arg, i)) return false
    for (let k = 0; k < i; k++) if (sharesMemory(arg, args[k]) && !found(args[k], k, arg, i)) return false
  }
  return true
}

/** Such pairs by position, whether they are the same tensor (2) or views of the same (1), and the distance of their first elements. */
function sharingOf(tensors: Together): readonly number[] {
  const pairs: number[] = []
  everyPair(tensors, (other, position, arg, i) => {
    pairs.push(position, i, arg === other ? 2 : rootOf(arg) === rootOf(other) ? 1 : 0, arg.offset - (other?.offset ?? 0))
    return true
  })
  return pairs
}

const never = (): boolean => false

const sharing: StateKind<Together, readonly number[]> = {
  name: 'which tensors are the same one, or share memory',
  compile: 'operator',
  read: sharingOf,
  // Most calls have none.
  agrees: (tensors, known) => (known.length === 0 ? everyPair(tensors, never) : sameShape(sharingOf(tensors), known)),
  key: (tensors) => sharingOf(tensors).join(),
  show: (known) => (known.length === 0 ? 'arguments with memory of their own' : 'arguments that share memory'),
  change: () => 'other arguments than before are the same tensor, or share memory',
}

const structure: StateKind<TreeSpec, string> = {
  name: 'the structure of the arguments',
  compile: 'call',
  read: (spec) => JSON.stringify(spec),
  key: (spec) => JSON.stringify(spec),
  show: String,
  change: (was, is) => `the arguments had the structure ${was}, now have ${is}`,
}

const value: StateKind<unknown> = {
  name: 'the value, if it is no tensor',
  compile: 'program',
  read: (of) => of,
  agrees: (of, known) => Object.is(of, known),
  key: (of) => {
    if (isObject(of) || isFunction(of)) return `#${identityOf(of)}`
    return typeof of === 'string' ? JSON.stringify(of) : `${typeof of} ${Object.is(of, -0) ? '-0' : String(of)}`
  },
  ...wasIs('the value', valueText),
}

/** Of an argument that is no tensor. */
export const valueState: readonly StateKind<unknown>[] = [value]
/** Of the tensors among the arguments, together with those from outside. */
export const tensorsState: readonly StateKind<Together>[] = [sharing]
/** Of the arguments' structure. */
export const structureState: readonly StateKind<TreeSpec>[] = [structure]

// ---- of modules: those that were called, that are arguments, or that were compiled, with all below them ----

const mode: StateKind<Module, boolean> = {
  name: 'the mode: train or eval',
  compile: 'program',
  read: (module) => module.training,
  key: (module) => (module.training ? 't' : 'e'),
  show: (training) => (training ? 'training mode' : 'evaluation mode'),
  change: (_, training) => (training ? 'is in training mode now' : 'is in evaluation mode now'),
}

/** Properties of a module by name, without `training`. */
function attributesOf(module: Module): Readonly<Record<string, unknown>> {
  const { training: _, ...others } = Object.fromEntries(Object.entries(module))
  return others
}

const attributes: StateKind<Module, Readonly<Record<string, unknown>>> = {
  name: 'its parameters, buffers, children and other properties',
  compile: 'program',
  read: attributesOf,
  agrees: (module, known) => {
    const now: Readonly<Record<string, unknown>> = Object(module)
    const names = Object.keys(known)
    return Object.keys(module).length === names.length + 1 && names.every((name) => Object.is(now[name], known[name]))
  },
  key: (module) =>
    Object.entries(attributesOf(module))
      .map(([name, of]) => `${name}: ${value.key(of)}`)
      .join(),
  show: (known) => Object.keys(known).join(', '),
  change: (was, is) => {
    const name = Object.keys({ ...was, ...is }).find((known) => !Object.is(was[known], is[known]))
    return `has another value of '${String(name)}' now`
  },
}

const hooks: StateKind<Module, readonly (Hook | string)[]> = {
  name: 'its forward hooks',
  compile: 'program',
  read: hooksList,
  agrees: (module, known) =>
    known.length === 0
      ? hooksOf(module, 'forwardPre') === undefined && hooksOf(module, 'forward') === undefined
      : sameItems(hooksList(module), known),
  key: (module) => hooksList(module).map(value.key).join(),
  show: (known) => `${known.length} hooks`,
  change: () => 'has other forward hooks now',
}

function hooksList(module: Module): readonly (Hook | string)[] {
  return (['forwardPre', 'forward'] as const).flatMap((kind) => {
    const known = hooksOf(module, kind)
    return known === undefined ? [] : [kind, ...known]
  })
}

const sameItems = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((item, i) => Object.is(item, b[i]))

const code: StateKind<Module, number> = {
  name: 'its code, if it is a GraphModule',
  compile: 'program',
  read: codeVersion,
  key: (module) => String(codeVersion(module)),
  show: (version) => `version ${version} of its code`,
  change: () => 'was recompiled',
}

export const moduleState: readonly StateKind<Module>[] = [mode, attributes, hooks, code]

// ---- of the tape ----

const derivative: StateKind<GradNode, object | null> = {
  name: 'the operators and Functions on the tape',
  compile: 'tape',
  read: (node) => (node instanceof OpNode ? node.op : node instanceof FunctionNode ? node.identity : null),
  key: (node) => node.name,
  show: (known) => (known === null ? 'a backward of its own' : 'the same backward'),
  change: () => 'the tape has another operator or Function',
}

const freed: StateKind<GradNode, boolean> = {
  name: 'what a backward has freed',
  compile: 'tape',
  read: (node) => node.released,
  key: (node) => String(node.released),
  show: String,
  change: (_, is) => (is ? 'a backward has freed a part of the tape' : 'the whole tape is there'),
}

/** Of a node on the tape. {@link derivative} is null where only running a node tells what it does. */
export const tapeState: readonly StateKind<GradNode>[] = [derivative, freed]

// ---- what graphs take as inputs ----

const generator: StateKind<null, GeneratorState> = {
  name: 'the state of the random generator',
  compile: 'input',
  read: () => defaultGenerator.getState(),
  key: () => JSON.stringify(defaultGenerator.getState()),
  ...wasIs<GeneratorState>('the state of the random generator', ({ seed, offset }) => `seed ${seed}, offset ${offset}`),
}

export const inputState: readonly StateKind<null>[] = [generator]

/** All kinds, by what has them. The guide's table. */
export const allState: readonly { readonly of: string; readonly kinds: readonly { readonly name: string; readonly compile: Moment }[] }[] = [
  { of: 'the process', kinds: [...processState, ...operatorState, ...inputState] },
  { of: 'a tensor', kinds: outerState },
  { of: 'the arguments', kinds: [...structureState, ...valueState, ...tensorsState] },
  { of: 'a module', kinds: moduleState },
  { of: 'the tape', kinds: tapeState },
]

// ---- reading and comparing ----

/** The present values of `of`. */
export const readState = <S>(kinds: readonly StateKind<S>[], of: S): readonly unknown[] => kinds.map((kind) => kind.read(of))

/** Whether `of` has these values. Called at every operator: a loop without allocations. */
export function agreesWith<S>(kinds: readonly StateKind<S>[], of: S, values: readonly unknown[]): boolean {
  for (let i = 0; i < kinds.length; i++) {
    const kind = kinds[i]
    if (kind !== undefined && !(kind.agrees === undefined ? kind.read(of) === values[i] : kind.agrees(of, values[i]))) return false
  }
  return true
}

/** A key of the present values of `of`. */
export function keyOf<S>(kinds: readonly StateKind<S>[], of: S): string {
  let key = ''
  for (let i = 0; i < kinds.length; i++) key += kinds[i]?.key(of) ?? ''
  return key
}

/** How what is differs from what was. */
export interface Change {
  readonly kind: string
  readonly expected: string
  readonly actual: string
  /** Both, after the name of what has the state. */
  readonly text: string
}

/** The first of these kinds in which `of` differs from `values`; null if there is none. */
export function changeOf<S>(kinds: readonly StateKind<S>[], of: S, values: readonly unknown[]): Change | null {
  const at = kinds.findIndex((kind, i) => !agreesWith([kind], of, [values[i]]))
  const kind = kinds[at]
  if (kind === undefined) return null
  const [was, is] = [values[at], kind.read(of)]
  return { kind: kind.name, expected: kind.show(was), actual: kind.show(is), text: kind.change(was, is) }
}
