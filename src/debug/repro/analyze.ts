// Finds where numbers first go wrong: compiles a graph that returns every intermediate value, and compares each with eager and float64.
// PyTorch's repro `analyze`; the quickest accuracy tool, since it needs no minification.
import { checkArray, checkCount, checkOptions } from '../../protocol/index.ts'
import { config } from '../../config.ts'
import { lookupBackend, runnable, resultsOf } from '../../dynamo/index.ts'
import { isCall } from '../../fx/passes/nodes/calls.ts'
import { Graph, GraphModule, Interpreter } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import type { Node } from '../../fx/index.ts'
import { same } from '../closeness/same.ts'
import { castToFp64 } from '../runs/castToFp64.ts'
import { backwardOf } from '../runs/forms.ts'
import { fileStore } from '../files/fileStore.ts'
import { pathOf } from '../common/node.ts'
import { TensorFiles, folderOf } from '../files/tensorFiles.ts'
import { contained, isolated, isolatedInputs } from '../runs/isolated.ts'

/** Options of {@link analyze}. */
export interface AnalyzeOptions {
  /** Run the backend twice, and report what differs. Default true. */
  readonly checkDeterministic?: boolean
  /** Leave the backward out. Default false. */
  readonly onlyFwd?: boolean
  /** A folder where the values of the backend and those in float64 are saved, so that later calls can take them from there. Default none. */
  readonly saveDir?: URL | string | null
  /** Take the values of the backend that an earlier call saved. Default false. */
  readonly skipSavingCompiled?: boolean
  /** Take the values in float64 that an earlier call saved. Default false. */
  readonly skipSavingFloat64?: boolean
}

/**
 * A report with a line for each intermediate value that diverges (`DIVERGED at name: reason`) or differs between two runs; "No divergence found" if none does. Where inputs or
 * parameters require gradients, the backward graph is analyzed on what it gets from eager kernels (`DIVERGED at name of the backward: reason`).
 */
export function analyze(gm: GraphModule, inputs: readonly unknown[], backend: string, options: AnalyzeOptions = {}): string {
  checkCount('analyze', arguments, 4)
  checkGraphModule('analyze', gm)
  checkArray('analyze', 'inputs', inputs)
  checkOptions('analyze', options, {
    checkDeterministic: 'boolean',
    onlyFwd: 'boolean',
    saveDir: true,
    skipSavingCompiled: 'boolean',
    skipSavingFloat64: 'boolean',
  })
  const forward = analyzed(gm, inputs, backend, options, '')
  const backward = options.onlyFwd === true ? null : contained(() => backwardOf(gm, inputs))
  const parts = backward === null ? [forward] : [forward, analyzed(backward.gm, backward.inputs, backend, options, ' of the backward')]
  const lines = parts.flatMap((part) => part.lines)
  const count = parts.reduce((sum, part) => sum + part.values, 0)
  return lines.length === 0 ? `No divergence found in ${count} intermediate values.` : lines.join('\n')
}

/** What was found, and in how many values. */
interface Analysis {
  readonly lines: readonly string[]
  readonly values: number
}

function analyzed(gm: GraphModule, inputs: readonly unknown[], backend: string, options: AnalyzeOptions, of: string): Analysis {
  return contained(() => {
    const exposed = withAllOutputs(gm)
    const names = intermediates(gm.graph).map((n) => n.name)
    // Both calls of the compiled graph and eager's start from the same random state.
    const runs = (run: (inputs: readonly unknown[]) => unknown): readonly unknown[] => contained(() => resultsOf(run(isolatedInputs(inputs))))
    const { checkDeterministic = true, skipSavingCompiled = false, skipSavingFloat64 = false } = options
    const saved = savedIn(pathOf('analyze', 'options.saveDir', options.saveDir ?? null), gm, names)
    let compiled: ReturnType<typeof runnable> | null = null
    const compiledValues = (): readonly unknown[] => {
      if (compiled === null) {
        const own = isolated(exposed, inputs)
        compiled = runnable(lookupBackend(backend)(own.model, own.inputs))
      }
      const run = compiled
      return runs((given) => run(...given))
    }
    const values = saved(`compiled-${encodeURIComponent(backend)}`, skipSavingCompiled, compiledValues)
    const again = checkDeterministic ? compiledValues() : values
    const eager = runs((given) => new Interpreter(isolated(exposed, []).model).run(...given))
    const fp64 = saved('float64', skipSavingFloat64, () => {
      const wide = castToFp64(exposed, inputs)
      return runs(() => new Interpreter(wide.gm).run(...wide.inputs))
    })
    const lines: string[] = []
    names.forEach((name, i) => {
      if (!same(values[i], again[i], null, { tol: 0, equalNan: true, logError: () => {} })) lines.push(`NONDETERMINISTIC ${backend} at ${name}${of}`)
      let reason = ''
      const ok = same(eager[i], values[i], fp64[i], { tol: config.reproTolerance, equalNan: true, logError: (m) => (reason = m) })
      if (!ok) lines.push(`DIVERGED at ${name}${of}: ${reason}`)
    })
    return { lines, values: names.length }
  })
}

/** A function that computes the values of all nodes and saves them, or takes those that were saved. Without a folder, it computes. */
function savedIn(
  dir: string | null,
  gm: GraphModule,
  names: readonly string[],
): (kind: string, isSaved: boolean, values: () => readonly unknown[]) => readonly unknown[] {
  if (dir === null) return (_kind, _isSaved, values) => values()
  const files = new TensorFiles(fileStore(), dir)
  return (kind, isSaved, values) => {
    const nameOf = (name: string): string => `${folderOf(kind, gm)}/${name}`
    if (isSaved) return names.map((name) => files.read(nameOf(name)))
    const computed = values()
    for (const [i, name] of names.entries()) files.write(nameOf(name), computed[i])
    return computed
  }
}

const intermediates = (graph: Graph): Node[] => [...graph.nodes].filter(isCall)

/** The same graph, returning every intermediate value. */
function withAllOutputs(gm: GraphModule): GraphModule {
  const graph = gm.graph.deepCopy()
  graph.outputNode().args = [intermediates(graph)]
  return new GraphModule(gm, graph)
}
