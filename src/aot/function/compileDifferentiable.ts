// A captured graph with a backward: its joint graph is traced, split and compiled.
import { GraphModule, Interpreter } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArray } from '../../protocol/index.ts'
import { asTensors } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { compileJoint } from './compileJoint.ts'
import type { Differentiable, JointOptions } from './compileJoint.ts'
import { traceJoint } from './traceJoint.ts'

/** Splits a functional graph whose outputs at `heads` will be differentiated, and compiles both parts. All inputs must be tensors. */
export function compileDifferentiable(gm: GraphModule, inputs: readonly unknown[], heads: readonly number[], options: JointOptions): Differentiable {
  checkGraphModule('compileDifferentiable', gm)
  checkArray('compileDifferentiable', 'inputs', inputs)
  const names = gm.graph.findNodes({ op: 'placeholder' }).map((n) => n.name)
  const results = (...fakes: readonly Tensor[]): readonly Tensor[] => {
    const outputs: unknown = new Interpreter(gm).run(...fakes)
    checkArray('compileDifferentiable', 'the outputs of the graph', outputs)
    return asTensors(outputs, 'the outputs of the graph')
  }
  const joint = traceJoint(results, asTensors(inputs, 'the inputs'), { names, heads })
  return compileJoint({ ...joint, writeBacks: writeBacksOf(gm) ?? joint.writeBacks }, inputs, gm.className, options)
}

/** What a captured graph writes to its inputs: from positions of outputs to positions of inputs. */
function writeBacksOf(gm: GraphModule): ReadonlyMap<number, number> | undefined {
  const given = gm.meta['writeBacks']
  return given instanceof Map ? given : undefined
}
