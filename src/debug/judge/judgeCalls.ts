// Several calls of what a backend makes of a graph, judged as a program would make them: for failures that need a history.
import { resultsOf } from '../../dynamo/index.ts'
import { noGrad } from '../../autograd/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { Tensor, sameShape } from '../../tensor/index.ts'
import { CallCheck, restore } from './callCheck.ts'
import type { Compiled, Finding } from './callCheck.ts'
import type { Calls } from '../runs/history.ts'
import { isolatedInputs } from '../runs/isolated.ts'

/** What the first wrong call of several did wrong, and its number from 0. */
export interface CallFinding {
  readonly finding: Finding
  readonly call: number
}

/**
 * Judges calls of a graph that `compile` makes code of, as a program would make them: with tensors of their own at each call, but for those that did not change, and then
 * with the same tensors at each, since code may remember a tensor or an address. Null if all are right. Throws what the compiled code throws.
 */
export function judgeCalls(gm: GraphModule, compile: () => Compiled, calls: Calls, report: (why: string) => void): CallFinding | null {
  const own = isolatedInputs(calls).map((inputs) => resultsOf(inputs))
  const found = judgeEach(gm, compile(), calls, own, report)
  return found !== null || calls.length === 1 ? found : judgeEach(gm, compile(), calls, inSameTensors(calls), report)
}

function judgeEach(gm: GraphModule, compiled: Compiled, calls: Calls, given: Calls, report: (why: string) => void): CallFinding | null {
  const check = new CallCheck(gm, compiled, report)
  /** A program keeps what it gets. */
  const held: unknown[] = []
  for (const [call, before] of calls.entries()) {
    const inputs = given[call] ?? []
    // What an earlier call wrote to an input has been changed again by the program.
    restore(before, inputs)
    check.begin()
    const outputs = noGrad(() => compiled(...inputs))
    held.push(outputs)
    const finding = check.judge(before, inputs, outputs)
    if (finding !== null) return { finding, call }
  }
  return null
}

/** Inputs for each call: at each place the tensor of the call before, if it has the same layout. */
function inSameTensors(calls: Calls): Calls {
  const given: (readonly unknown[])[] = []
  for (const before of calls) {
    const earlier = given.at(-1) ?? []
    given.push(isolatedInputs(before).map((own, i) => (haveSameLayout(own, earlier[i]) ? earlier[i] : own)))
  }
  return given
}

const haveSameLayout = (a: unknown, b: unknown): boolean =>
  a instanceof Tensor &&
  b instanceof Tensor &&
  a.dtype === b.dtype &&
  a.offset === b.offset &&
  a.storage?.nbytes === b.storage?.nbytes &&
  sameShape(a.shape, b.shape) &&
  sameShape(a.strides, b.strides)
