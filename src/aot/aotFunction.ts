// aotFunction: forward and backward of a function, traced ahead of time and compiled by compilers of your own.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError, InternalError } from '../errors/index.ts'
import { copy_ } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import { compileJoint, traceJoint } from './joint.ts'
import type { JointOptions } from './joint.ts'

/**
 * Traces `fn` for the shapes of its arguments, and compiles its forward graph and (if an input requires grad) its backward graph; calls with other shapes
 * are traced again. Tensors must be arguments; numbers and all other values are constants of the graph. PyTorch's functorch.compile.aot_function.
 *
 *     const f = aotFunction((x) => x.sin().sum(), { fwCompiler: (gm) => { console.log(gm.code); return (...i) => gm.forward(...i) } })
 */
export function aotFunction<A extends readonly unknown[], R>(fn: (...args: A) => R, options: JointOptions): (...args: A) => R {
  checkOptions('aotFunction', options, { fwCompiler: true, bwCompiler: true, partition: true })
  const compiled = new Map<string, { run: (...inputs: readonly unknown[]) => readonly unknown[]; spec: TreeSpec }>()
  return (...args) => {
    const { leaves, spec } = treeFlatten(args)
    const inputs = leaves.filter((leaf) => leaf instanceof Tensor)
    const key = JSON.stringify([
      spec,
      leaves.map((leaf) => (leaf instanceof Tensor ? [leaf.dtype, leaf.shape, leaf.strides, leaf.requiresGrad] : String(leaf))),
    ])
    let entry = compiled.get(key)
    if (entry === undefined) {
      const out: TreeSpec[] = []
      const flat = (...tensors: readonly Tensor[]): readonly Tensor[] => {
        let next = 0
        const filled = leaves.map((leaf) => (leaf instanceof Tensor ? tensors[next++] : leaf))
        // The structure is that of `args`, filled with tensors for tensors.
        const result = treeFlatten(fn(...(treeUnflatten(filled, spec) as A)))
        out.push(result.spec)
        return result.leaves.map((leaf) => {
          if (leaf instanceof Tensor) return leaf
          throw new ArgumentError(`aotFunction: the function must return tensors (in arrays, objects or Maps), but returned a ${typeof leaf}.`)
        })
      }
      const name = fn.name === '' ? 'aot' : fn.name
      const joint = traceJoint(flat, inputs)
      const { run } = compileJoint(joint, inputs, name, options)
      const [outSpec] = out
      if (outSpec === undefined) throw new InternalError('aotFunction: the function was not traced')
      entry = { run: (...values) => writeBack(run(...values), values, joint.writeBacks), spec: outSpec }
      compiled.set(key, entry)
    }
    return treeUnflatten(entry.run(...inputs), entry.spec) as R
  }
}

/** Copies to the inputs what the function wrote to them; returns the other outputs. */
function writeBack(outputs: readonly unknown[], inputs: readonly unknown[], writeBacks: ReadonlyMap<number, number>): readonly unknown[] {
  noGrad(() => {
    for (const [position, input] of writeBacks)
      copy_(asTensor(inputs[input], 'a written input'), asTensor(outputs[position], 'the new value of an input'))
  })
  return outputs.slice(0, outputs.length - writeBacks.size)
}
