// aotFunction: forward and backward of a function, traced ahead of time and compiled by compilers of your own.
import { noGrad } from '../autograd/index.ts'
import { ArgumentError } from '../errors/index.ts'
import { copy_ } from '../ops/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import type { TreeSpec } from '../pytree/index.ts'
import { Tensor } from '../tensor/index.ts'
import { compileJoint, traceJoint } from './joint.ts'
import type { JointOptions } from './joint.ts'

const OPTIONS = ['fwCompiler', 'bwCompiler', 'partition']

/**
 * Traces `fn` for the shapes of its first call, and compiles its forward graph and (when an input requires grad) its backward graph. Tensors must come
 * as arguments; numbers and everything else are fixed. Throws ArgumentError for a call of another structure. PyTorch's functorch.compile.aot_function.
 *
 *     const f = aotFunction((x) => x.sin().sum(), { fwCompiler: (gm) => { console.log(gm.code); return (...i) => gm.forward(...i) } })
 */
export function aotFunction<A extends readonly unknown[], R>(fn: (...args: A) => R, options: JointOptions): (...args: A) => R {
  for (const key of Object.keys(options))
    if (!OPTIONS.includes(key)) throw new ArgumentError(`aotFunction: unknown option '${key}'; known are ${OPTIONS.join(', ')}.`)
  const compiled = new Map<string, { run: (...inputs: readonly unknown[]) => readonly unknown[]; spec: TreeSpec }>()
  return (...args) => {
    const { leaves, spec } = treeFlatten(args)
    const inputs = leaves.filter((leaf): leaf is Tensor => leaf instanceof Tensor)
    const key = JSON.stringify([
      spec,
      leaves.map((leaf) => (leaf instanceof Tensor ? [leaf.dtype, leaf.shape, leaf.strides, leaf.requiresGrad] : String(leaf))),
    ])
    let entry = compiled.get(key)
    if (entry === undefined) {
      let out: TreeSpec | null = null
      const flat = (...tensors: readonly Tensor[]): readonly Tensor[] => {
        let next = 0
        const filled = leaves.map((leaf) => (leaf instanceof Tensor ? tensors[next++] : leaf))
        const result = treeFlatten(fn(...(treeUnflatten(filled, spec) as unknown as A)))
        out = result.spec
        if (!result.leaves.every((leaf) => leaf instanceof Tensor))
          throw new ArgumentError('aotFunction: the function must return tensors (in arrays, objects or Maps).')
        return result.leaves as readonly Tensor[]
      }
      const name = fn.name === '' ? 'aot' : fn.name
      const joint = traceJoint(flat, inputs)
      const { run } = compileJoint(joint, inputs, name, options)
      entry = { run: (...values) => writeBack(run(...values), values, joint.writeBacks), spec: out as unknown as TreeSpec }
      compiled.set(key, entry)
    }
    return treeUnflatten(entry.run(...inputs), entry.spec) as R
  }
}

/** Stores what the function wrote to its inputs there; returns the other outputs. */
function writeBack(outputs: readonly unknown[], inputs: readonly unknown[], writeBacks: ReadonlyMap<number, number>): readonly unknown[] {
  noGrad(() => {
    for (const [position, input] of writeBacks) copy_(inputs[input] as Tensor, outputs[position] as Tensor)
  })
  return outputs.slice(0, outputs.length - writeBacks.size)
}
