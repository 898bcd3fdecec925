// Anomaly mode for the backward of a compiled graph: a NaN that it returns is looked for node by node, on eager kernels.
import { anomaly, hasNaN, nanError, nanErrorAt, noGrad } from '../../autograd/index.ts'
import { withoutModes } from '../../dispatch/index.ts'
import { Interpreter } from '../../fx/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { isObject } from '../../protocol/index.ts'
import { CapturedStack } from '../../provenance/index.ts'
import { clone } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'

/** Which derivative computes a node of a backward graph; undefined if none is known. */
function derivativeOf(node: Node): { readonly name: string; readonly output: number; readonly stack: CapturedStack | undefined } | undefined {
  const given = node.meta['gradient']
  if (!isObject(given) || !('name' in given) || !('output' in given) || !('stack' in given)) return undefined
  const { name, output, stack } = given
  if (typeof name !== 'string' || typeof output !== 'number') return undefined
  return { name, output, stack: stack instanceof CapturedStack ? stack : undefined }
}

const isBad = (value: unknown): boolean => value instanceof Tensor && hasNaN(value)

/** The error for a NaN that a compiled backward graph returned from `args`. */
function explain(graph: GraphModule, args: readonly unknown[], gradient: number): Error {
  let found: Error | null = null
  const run = new Interpreter(graph)
  run.addHook({
    after: (node, value) => {
      if (found !== null || !isBad(value)) return
      const derivative = derivativeOf(node)
      if (derivative !== undefined) found = nanErrorAt(derivative.name, derivative.output, derivative.stack)
    },
  })
  const gradients: unknown = withoutModes(() => noGrad(() => run.run(...args)))
  if (found !== null) return found
  const isEagerToo = Array.isArray(gradients) && isBad(gradients[gradient])
  return nanError(
    'the backward of a compiled function',
    gradient,
    isEagerToo ? 'They come from the sum of several gradients.' : 'Only the compiled code does: its graph, run on eager kernels, returns none.',
  )
}

/** The gradients that `run`, the compiled code of a backward graph, computes of `args`. In anomaly mode, throws AutogradError for NaN: it names the operator and its forward call. */
export function checkedGradients(graph: GraphModule, args: readonly unknown[], run: () => readonly (Tensor | null)[]): readonly (Tensor | null)[] {
  if (!anomaly.enabled) return run()
  // The code may overwrite its inputs.
  const copies = args.map((arg) => (arg instanceof Tensor ? clone(arg) : arg))
  const gradients = run()
  const bad = gradients.findIndex(isBad)
  if (bad >= 0) throw explain(graph, copies, bad)
  return gradients
}
