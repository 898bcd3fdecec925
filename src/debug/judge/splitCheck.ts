// How a joint graph of forward and backward is split, judged: the halves one after the other have to give what the joint graph gives. All of it runs on eager kernels, so that a
// difference is one of the split, and of no backend. Level 4 after aot looks at the first call of each.
import { jointModule } from '../../aot/joint/jointParts.ts'
import type { JointGraph } from '../../aot/index.ts'
import type { SplitWatch } from '../../aot/function/compileJoint.ts'
import { tensorSpec } from '../../aot/meta/valueSpec.ts'
import { noGrad } from '../../autograd/index.ts'
import { config } from '../../config.ts'
import { resultsOf } from '../../dynamo/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { randn } from '../../ops/index.ts'
import { Generator } from '../../tensor/index.ts'
import { AccuracyError } from '../closeness/accuracyError.ts'
import { describe } from '../common/describeError.ts'
import { contained, isolated } from '../runs/isolated.ts'
import { log } from '../common/log.ts'
import { judgedSame } from '../closeness/same.ts'

/** What looks at the split of a joint graph; null unless level 4 watches after aot. */
export function watchSplit(joint: JointGraph, name: string): SplitWatch | null {
  const { reproAfter, reproLevel, reproForwardOnly } = config
  if (reproAfter !== 'aot' || reproLevel !== 4 || reproForwardOnly || joint.failures?.some((failure) => failure !== null) === true) return null
  return new SplitCheck(joint, name)
}

class SplitCheck implements SplitWatch {
  readonly #joint: JointGraph
  readonly #name: string
  /** A copy from before the split: what splits a graph may change it. */
  readonly #whole: GraphModule
  #halves: { readonly forward: GraphModule; readonly backward: GraphModule } | null = null

  constructor(joint: JointGraph, name: string) {
    this.#joint = joint
    this.#name = name
    this.#whole = jointModule(joint, name)
  }

  readonly split = (forward: GraphModule, backward: GraphModule): void => {
    this.#halves = { forward: forward.deepCopy({ shareTensors: true }), backward: backward.deepCopy({ shareTensors: true }) }
  }

  readonly called = (values: readonly unknown[]): void => {
    const halves = this.#halves
    if (halves === null) return
    this.#halves = null
    const reasons: string[] = []
    let isSame: boolean
    try {
      const { whole, split } = contained(() => noGrad(() => this.#run(values, halves)))
      const { reproTolerance: tol, reproIgnoreNonFp: ignoreNonFp } = config
      isSame = judgedSame(whole, split, null, { tol, ignoreNonFp, logError: (reason) => void reasons.push(reason) }, [])
    } catch (error) {
      log.warning(`The split of ${this.#name} was not checked: ${describe(error)}`)
      return
    }
    if (isSame) return
    const message = `The forward and the backward half of ${this.#name} do not compute what its joint graph computes, on eager kernels: the partition is wrong, and not the backend.`
    log.error(message)
    throw new AccuracyError(message, { cause: reasons.join('; ') })
  }

  /** What the joint graph gives, and what its halves give, by name. */
  #run(
    values: readonly unknown[],
    { forward, backward }: { readonly forward: GraphModule; readonly backward: GraphModule },
  ): { readonly whole: Readonly<Record<string, unknown>>; readonly split: Readonly<Record<string, unknown>> } {
    const { inputs, tangents, outputs } = this.#joint
    const generator = new Generator(0)
    const starts = tangents.map((node) => {
      const known = tensorSpec(node)
      return known !== null ? randn(known.shape, { generator }).to(known.dtype) : null
    })
    const given = new Map<string, unknown>([...inputs, ...tangents].map((node, i) => [node.name, [...values, ...starts][i]]))
    const run = (gm: GraphModule, args: readonly unknown[]): readonly unknown[] => {
      const copy = isolated(gm, args)
      return resultsOf(copy.model.forward(...copy.inputs))
    }
    const whole = run(
      this.#whole,
      this.#whole.graph.findNodes({ op: 'placeholder' }).map(({ name }) => given.get(name)),
    )
    const results = run(forward, values)
    const gradients = run(backward, [...results.slice(outputs.length), ...starts]).filter((gradient) => gradient !== null)
    return { whole: this.#named(whole), split: this.#named([...results.slice(0, outputs.length), ...gradients]) }
  }

  #named(results: readonly unknown[]): Readonly<Record<string, unknown>> {
    const { inputs, outputs, gradInputs, grads } = this.#joint
    const names = [
      ...outputs.map((node, i) => `output ${i} (${node.name})`),
      ...gradInputs.flatMap((input, i) => ((grads[i] ?? null) === null ? [] : [`gradient of ${inputs[input]?.name ?? `input ${input}`}`])),
    ]
    return Object.fromEntries(results.map((value, i) => [names[i] ?? `value ${i}`, value]))
  }
}
