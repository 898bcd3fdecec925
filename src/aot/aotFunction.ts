// aotFunction: forward and backward of a function, traced ahead of time and compiled by compilers of your own.
import { noGrad } from '../autograd/index.ts'
import { present } from '../errors/index.ts'
import { copy_ } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import { compileJoint, traceJoint } from './joint.ts'
import type { JointOptions } from './joint.ts'

/**
 * Traces `fn` for the shapes of its arguments, and compiles its forward graph and (if an input requires grad) its backward graph; calls with other shapes
 * are traced again. Numbers and other values are constants of
 * the graph; tensors that are no arguments are further inputs. Random operators draw anew at each call: the graphs take
 * seeds and offsets as inputs. PyTorch's functorch.compile.aot_function.
 *
 *     const f = aotFunction((x) => x.sin().sum(), { fwCompiler: (gm) => { console.log(gm.code); return (...i) => gm.forward(...i) } })
 */
export function aotFunction<A extends readonly unknown[], R>(fn: (...args: A) => R, options: JointOptions): (...args: A) => R {
  checkOptions('aotFunction', options, { fwCompiler: true, bwCompiler: true, partition: true })
  const compiled = new Map<string, Entry>()
  return (...args) => {
    const { leaves, spec } = treeFlatten(args)
    const inputs = leaves.filter((leaf) => leaf instanceof Tensor)
    const key = JSON.stringify([
      spec,
      leaves.map((leaf) => (leaf instanceof Tensor ? [leaf.dtype, leaf.shape, leaf.strides, leaf.requiresGrad] : String(leaf))),
    ])
    const { run, result } = compiled.get(key) ?? compileFor()
    const outputs = run(...inputs)
    let next = 0
    return treeUnflatten(
      result.leaves.map((leaf) => (leaf instanceof Tensor ? outputs[next++] : leaf)),
      result.spec,
    ) as R

    function compileFor(): Entry {
      const templates: Template[] = []
      const flat = (...tensors: readonly Tensor[]): readonly Tensor[] => {
        let position = 0
        const filled = leaves.map((leaf) => (leaf instanceof Tensor ? tensors[position++] : leaf))
        // The structure is that of `args`, filled with tensors for tensors.
        const template = treeFlatten(fn(...(treeUnflatten(filled, spec) as A)))
        templates.push(template)
        return template.leaves.filter((leaf) => leaf instanceof Tensor)
      }
      const joint = traceJoint(flat, inputs)
      const differentiable = compileJoint(joint, inputs, fn.name === '' ? 'aot' : fn.name, options)
      const entry: Entry = {
        run: (...values) => writeBack(differentiable.run(...values), [...values, ...(joint.constants ?? [])], joint.writeBacks),
        result: present(templates[0], 'what the function returned'),
      }
      compiled.set(key, entry)
      return entry
    }
  }
}

interface Entry {
  readonly run: (...inputs: readonly unknown[]) => readonly unknown[]
  readonly result: Template
}

/** What the function returned when it was traced: the tensors in it are replaced at each call, other values are constants. */
type Template = ReturnType<typeof treeFlatten>

/** Copies to the inputs what the function wrote to them; returns the other outputs. */
function writeBack(outputs: readonly unknown[], inputs: readonly unknown[], writeBacks: ReadonlyMap<number, number>): readonly unknown[] {
  noGrad(() => {
    for (const [position, input] of writeBacks)
      copy_(asTensor(inputs[input], 'a written input'), asTensor(outputs[position], 'the new value of an input'))
  })
  return outputs.slice(0, outputs.length - writeBacks.size)
}
