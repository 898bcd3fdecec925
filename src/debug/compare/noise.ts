// How much rounding may move the results of a graph, found by computing it again with its numbers moved by a unit in the last place. A result that another order of the
// same operations could give is then no error, even where terms cancel; one that no rounding explains is an error, however small it is.
import { noGrad } from '../../autograd/index.ts'
import { withMode } from '../../dispatch/index.ts'
import { Interpreter } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { DType } from '../../kernels/index.ts'
import { treeMap } from '../../pytree/index.ts'
import { finfo, setRngState, Tensor, tensorFromValues } from '../../tensor/index.ts'
import type { GeneratorState } from '../../tensor/index.ts'
import { MARGIN, elementsOf, magnitudeOf } from '../closeness/closeness.ts'
import { isolatedInputs } from '../runs/isolated.ts'
import { Quotients, SEED_PAIRS, leastOf, movedBy, signOf } from '../closeness/rounding.ts'
import { inFloat64, tensorsIn } from './float64.ts'

/** The runs in which a graph is computed again: each time the numbers move in other directions. */
const SAMPLES = SEED_PAIRS.flat()
/** The most that a unit of the inputs moves the result of one node, in units of what it computes with. Beyond, it is the step of a function such as `floor`. */
const STEP = 64

/** A node that was computed: what is known of its results. */
export interface Computed {
  readonly want: readonly Tensor[]
  /** For each element of each result, how far rounding moves it. */
  readonly noise: () => readonly Float64Array[]
}

/** Signs one after the other, the same in every program. */
function signsOf(sample: number): () => number {
  let count = 0
  return () => (signOf(count++, sample) ? 1 : -1)
}

const isFloating = (tensor: Tensor): boolean => dtypeInfo[tensor.dtype].floating

/** The unit in the last place of a result's dtype, of float32 for integers. */
const unitOf = (dtype: DType): number => finfo(dtypeInfo[dtype].floating ? dtype : 'float32').eps

/** The tensor with each element changed. */
function changed(tensor: Tensor, change: (value: number, i: number) => number): Tensor {
  if (!isFloating(tensor)) return tensor
  const next = tensorFromValues(elementsOf(tensor).map(change), tensor.shape, tensor.dtype)
  return next
}

const greatest = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0)

/**
 * How far rounding moves each element of the results of one node: how far its inputs move them when each of their elements moves by a unit in the last place, and how far the
 * eager kernels are from float64.
 */
export function noiseOfNode(
  part: GraphModule,
  inputs: readonly Tensor[],
  want: readonly Tensor[],
  eager: readonly Tensor[],
): readonly Float64Array[] {
  const exact = want.some((tensor, i) => tensor.dtype !== eager[i]?.dtype) ? want : noGrad(() => inFloat64(part, inputs))
  const unit = Math.max(0, ...eager.map(({ dtype }) => unitOf(dtype)))
  const largest = greatest(inputs.map(magnitudeOf))
  // A product may be as large as its factors together, before its terms cancel.
  const product = inputs.reduce((all, input) => all * Math.max(1, magnitudeOf(input)), 1)
  const samples = SAMPLES.map((sample) => {
    const sign = signsOf(sample)
    // In float64, where moving by a unit of the smaller dtype is not rounded away.
    const moved = inputs.map((input) =>
      changed(isFloating(input) ? noGrad(() => input.to('float64')) : input, (value) => value * (1 + unit * sign())),
    )
    return noGrad(() => inFloat64(part, moved))
  })
  return exact.map((tensor, i) => {
    const noise = new Float64Array(tensor.numel)
    if (!isFloating(tensor)) return noise
    const step = STEP * unit * Math.max(largest, product, magnitudeOf(tensor))
    const base = elementsOf(tensor)
    for (const other of [...samples.map((sample) => sample[i]), eager[i]]) {
      if (other === undefined) continue
      const numbers = elementsOf(other)
      for (const [at, value] of base.entries()) {
        const difference = Math.abs(value - (numbers[at] ?? NaN))
        if (difference <= step && difference > (noise[at] ?? 0)) noise[at] = difference
      }
    }
    return noise
  })
}

/** The results of a node again, with its quotients moved: where it jumps, on both sides. */
export const alternativesOf = (part: GraphModule, inputs: readonly unknown[]): readonly (readonly Tensor[])[] =>
  SAMPLES.map((sample) =>
    noGrad(() => withMode(new Quotients(sample), () => tensorsIn(new Interpreter(part.deepCopy()).run(...isolatedInputs(inputs))))),
  )

/** The difference from the reference that this noise explains, for any element. */
export const slackOf = (noise: readonly Float64Array[]): readonly number[] =>
  noise.map((values) => MARGIN * values.reduce((most, value) => Math.max(most, value), 0))

/** Runs a graph on eager kernels, and moves each result by what rounding explains at its node. */
class NoisyRun extends Interpreter {
  readonly #computed: ReadonlyMap<string, Computed>
  readonly #sign: () => number
  readonly #quotients: Quotients

  constructor(gm: GraphModule, computed: ReadonlyMap<string, Computed>, sample: number) {
    super(gm)
    this.#quotients = new Quotients(sample)
    this.#computed = computed
    this.#sign = signsOf(sample)
  }

  override runNode(node: Node): unknown {
    const value = withMode(this.#quotients, () => super.runNode(node))
    const known = this.#computed.get(node.name)
    if (known === undefined) return value
    const noise = known.noise()
    let result = 0
    return treeMap(value, (leaf) => {
      if (!(leaf instanceof Tensor)) return leaf
      const [wide, moves] = [known.want[result], noise[result]]
      result++
      if (wide === undefined || !isFloating(leaf)) return leaf
      const exact = elementsOf(wide)
      const unit = unitOf(leaf.dtype)
      const least = leastOf(leaf.dtype)
      // A value that is exact, such as that of a mask, stays as it is.
      return changed(leaf, (x, i) => {
        const isExact = wide.dtype === leaf.dtype ? Number.isInteger(x) : exact[i] === x
        const most = Math.max(isExact ? 0 : Math.max(least, unit * Math.abs(x)), moves?.[i] ?? 0)
        return movedBy(x, this.#sign() * most, leaf.dtype, Math.sign(exact[i] ?? 0))
      })
    })
  }
}

/** The results of a whole graph, several times, each moved by what rounding explains. The graph is run on copies. */
export function movedRuns(
  gm: GraphModule,
  inputs: readonly unknown[],
  computed: ReadonlyMap<string, Computed>,
  state: GeneratorState,
): readonly (readonly Tensor[])[] {
  return SAMPLES.map((sample) => {
    setRngState(state)
    return noGrad(() => tensorsIn(new NoisyRun(gm.deepCopy(), computed, sample).run(...inputs)))
  })
}
