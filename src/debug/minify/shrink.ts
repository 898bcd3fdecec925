// The last part of minifying: the graph has its final operators, and their inputs and constants become as plain as the failure allows. A relu over [8, 8, 8, 8] that
// fails for any input becomes one over [1]; one that fails for a single element keeps that element.
import { noGrad } from '../../autograd/index.ts'
import type { Argument } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { clone, fullLike, narrow, reshape, round, to } from '../../ops/index.ts'
import { remembered } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { operatorsOf } from './subgraph.ts'
import type { ReproState } from './subgraph.ts'

/** A way to make a state plainer: candidates, the boldest first. The first one that still fails is taken. */
interface Reduction {
  readonly name: string
  readonly candidates: (state: ReproState) => readonly (() => ReproState)[]
  /** Whether there is anything to do. */
  readonly isNeeded: (state: ReproState) => boolean
  /** Whether it is tried again after it succeeded. */
  readonly repeats?: boolean
}

/** The state with other tensors as inputs, those of all calls. What is one tensor stays one. */
function withTensors({ graph, inputs, earlier }: ReproState, change: (tensor: Tensor) => Tensor): ReproState {
  const made = new Map<Tensor, Tensor>()
  const changed = (values: readonly unknown[]): readonly unknown[] =>
    values.map((value) => (value instanceof Tensor ? remembered(made, value, () => change(value)) : value))
  return { graph: graph.deepCopy(), inputs: changed(inputs), earlier: earlier.map(changed) }
}

/** The state with other inputs. A tensor keeps whether it requires grad. */
function withInputs(state: ReproState, change: (tensor: Tensor) => Tensor): ReproState {
  return withTensors(state, (input) => {
    const next = noGrad(() => clone(change(input)))
    if (next.dtype === input.dtype) next.requiresGrad = input.requiresGrad
    return next
  })
}

/** The state with its graph changed in place. */
function withConstants(state: ReproState, change: (constant: number, isInList: boolean) => number): ReproState {
  const copy = state.graph.deepCopy()
  const changed = (arg: Argument, isInList: boolean): Argument => {
    if (typeof arg === 'number') return change(arg, isInList)
    return Array.isArray(arg) ? arg.map((item: Argument) => changed(item, true)) : arg
  }
  for (const node of operatorsOf(copy)) {
    node.args = node.args.map((arg) => changed(arg, false))
    node.kwargs = Object.fromEntries(Object.entries(node.kwargs).map(([key, arg]) => [key, changed(arg, false)]))
  }
  return { ...state, graph: copy }
}

/** The sizes above one that inputs have, the largest first. Equal sizes belong together: they shrink together. */
const sizesOf = (state: ReproState): readonly number[] =>
  [...new Set(tensorsOf(state).flatMap(({ shape }) => shape.filter((size) => size > 1)))].toSorted((a, b) => b - a)

/** All dimensions of one of these sizes cut to `length`, from their start or to their end. */
function cutTo(state: ReproState, sizes: readonly number[], length: number, fromEnd = false): ReproState {
  return withInputs(state, (tensor) =>
    tensor.shape.reduce((whole, size, dim) => (sizes.includes(size) ? narrow(whole, dim, fromEnd ? size - length : 0, length) : whole), tensor),
  )
}

/** The same, also where a list of sizes in the graph (`view(x, [64, 8])`) names one of them. */
const cutWithConstants = (state: ReproState, sizes: readonly number[], length: number): ReproState =>
  withConstants(cutTo(state, sizes, length), (constant, isInList) => (isInList && sizes.includes(constant) ? length : constant))

/** Whether all values of the inputs are zero, or all are one. */
const isPlain = (state: ReproState): boolean =>
  tensorsOf(state).every((tensor) => {
    const values = tensor.toTypedArray()
    return values.every((value) => value === values[0] && (value === 0 || value === 1))
  })

const isWhole = (tensor: Tensor): boolean => tensor.toTypedArray().every((value) => Number.isInteger(value))

const filled = (state: ReproState, value: number): ReproState => withInputs(state, (tensor) => fullLike(tensor, value))

const toFloat32 = (state: ReproState): ReproState => withInputs(state, (tensor) => to(tensor, 'float32'))

const withoutGrad = (state: ReproState): ReproState => withTensors(state, (input) => (input.requiresGrad ? input.detach().clone() : input))

/** Constants other than the usual 0, 1 and -1. Those in lists are sizes and positions. */
const isOdd = (constant: number): boolean => ![0, 1, -1].includes(constant)

function oddConstants(state: ReproState): readonly number[] {
  const found = new Set<number>()
  withConstants(state, (constant, isInList) => {
    if (!isInList && isOdd(constant)) found.add(constant)
    return constant
  })
  return [...found]
}

const plainConstants = (state: ReproState, which: readonly number[]): ReproState =>
  withConstants(state, (constant, isInList) => (!isInList && which.includes(constant) ? 1 : constant))

/** The tensors among the inputs of all calls. */
const tensorsOf = ({ inputs, earlier }: ReproState): readonly Tensor[] => [...earlier, inputs].flat().filter((input) => input instanceof Tensor)

const isOneElement = (tensor: Tensor): boolean => tensor.ndim === 1 && tensor.numel === 1

/** Every input as a vector of one element, that at the same place in each. */
const elementAt = (state: ReproState, place: number): ReproState =>
  withInputs(state, (tensor) => narrow(reshape(tensor, [-1]), 0, place % Math.max(1, tensor.numel), 1))

/** Where values are the most unusual: the largest and the smallest of all inputs, NaN and infinity before others. */
function unusualPlaces(state: ReproState): readonly number[] {
  const places = new Map<string, { readonly place: number; readonly value: number }>()
  const take = (what: string, place: number, value: number): void => {
    const known = places.get(what)
    if (known === undefined || value > known.value) places.set(what, { place, value })
  }
  for (const tensor of tensorsOf(state)) {
    if (!dtypeInfo[tensor.dtype].floating) continue
    tensor.toTypedArray().forEach((value, place) => {
      take('large', place, Number.isNaN(value) ? Infinity : Math.abs(value))
      take('small', place, -value)
    })
  }
  return [...new Set([...places.values()].map(({ place }) => place))].filter((place) => place > 0)
}

const isFloat = (tensor: Tensor): boolean => dtypeInfo[tensor.dtype].floating

const reductions: readonly Reduction[] = [
  {
    name: 'Simplify inputs',
    isNeeded: (state) => !(isPlain(state) && tensorsOf(state).every(isOneElement)),
    candidates: (state) => {
      const plain = (): ReproState => filled(elementAt(plainConstants(state, oddConstants(state)), 0), 1)
      return [(): ReproState => toFloat32(withoutGrad(plain())), plain]
    },
  },
  {
    name: 'Shrink shapes',
    isNeeded: (state) => !tensorsOf(state).every(isOneElement),
    candidates: (state) => [
      ...[0, ...unusualPlaces(state)].map((place) => (): ReproState => elementAt(state, place)),
      (): ReproState => cutTo(state, sizesOf(state), 1),
      (): ReproState => cutWithConstants(state, sizesOf(state), 1),
      // Vectors are flat already, and the candidate would be the state itself.
      ...(tensorsOf(state).every((tensor) => tensor.ndim === 1) ? [] : [(): ReproState => withInputs(state, (tensor) => reshape(tensor, [-1]))]),
    ],
  },
  {
    name: 'Shrink a size',
    isNeeded: (state) => sizesOf(state).length > 0,
    repeats: true,
    candidates: (state) =>
      sizesOf(state).flatMap((size) => {
        const half = Math.ceil(size / 2)
        return [
          (): ReproState => cutTo(state, [size], half),
          (): ReproState => cutTo(state, [size], half, true),
          (): ReproState => cutWithConstants(state, [size], half),
        ]
      }),
  },
  { name: 'Simplify values', isNeeded: (state) => !isPlain(state), candidates: (state) => [1, 0].map((value) => () => filled(state, value)) },
  {
    name: 'Round values',
    isNeeded: (state) => tensorsOf(state).some((tensor) => isFloat(tensor) && !isWhole(tensor)),
    candidates: (state) => [(): ReproState => withInputs(state, (tensor) => (isFloat(tensor) ? round(tensor) : tensor))],
  },
  {
    name: 'Simplify gradients',
    isNeeded: (state) => tensorsOf(state).some((tensor) => tensor.requiresGrad),
    candidates: (state) => [(): ReproState => withoutGrad(state)],
  },
  {
    name: 'Simplify dtypes',
    isNeeded: (state) => tensorsOf(state).some((tensor) => tensor.dtype !== 'float32'),
    candidates: (state) => [(): ReproState => toFloat32(state)],
  },
  {
    name: 'Simplify constants',
    isNeeded: (state) => oddConstants(state).length > 0,
    candidates: (state) => {
      const odd = oddConstants(state)
      const single = odd.length === 1 ? [] : odd.map((constant) => [constant])
      return [odd, ...single].map((constants) => () => plainConstants(state, constants))
    },
  },
]

export interface Judges {
  /** Whether the graph runs without the backend; a candidate that does not is none. It costs no query. */
  readonly runs: (state: ReproState) => boolean
  readonly fails: (state: ReproState) => Promise<boolean>
  /** Told of each reduction that was kept. */
  readonly kept: (name: string, state: ReproState) => void
}

/** Makes inputs and constants plainer while the state fails, with at most `budget` queries. */
export async function shrinkValues(start: ReproState, budget: number, { runs, fails, kept }: Judges): Promise<ReproState> {
  let state = start
  let left = budget
  const attempt = async ({ name, isNeeded, candidates }: Reduction): Promise<boolean> => {
    if (!isNeeded(state)) return false
    for (const make of candidates(state)) {
      if (left === 0) return false
      const candidate = made(make)
      if (candidate === null || !runs(candidate)) continue
      left--
      if (!(await fails(candidate))) continue
      state = candidate
      kept(name, state)
      return true
    }
    return false
  }
  for (const reduction of reductions) while ((await attempt(reduction)) && reduction.repeats === true);
  return state
}

/** A candidate; null if an operator refuses what the reduction asks of it, such as a cast that is not possible. */
function made(make: () => ReproState): ReproState | null {
  try {
    return make()
  } catch {
    return null
  }
}
