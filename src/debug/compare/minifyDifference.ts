// From a difference between a backend and the reference to the smallest graph that shows it, and a folder that shows it again.
import { UnsupportedError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { noGrad } from '../../autograd/index.ts'
import { saveGraphModule, writeSafetensors } from '../../interop/index.ts'
import { checkOptions, quote } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { fileStore, joinPath } from '../fileStore.ts'
import { minifier } from '../minifier.ts'
import type { MinifierResult } from '../minifier.ts'
import { packageSpecifier } from '../reproScript.ts'
import type { Candidate } from './backends.ts'
import { magnitude } from './error.ts'
import { measure } from './measure.ts'
import { inFloat64, tensorsIn } from './reference.ts'
import type { ReferenceKind } from './reference.ts'

/** Options of `BackendComparison.minify`. */
export interface MinifyDifferenceOptions {
  /** The folder for the repro: the graph, its inputs, and `compare.mjs`, which compares them again. Default: nothing is written. */
  readonly directory?: string
  /** A module that registers the backend when it is imported; the repro imports it. */
  readonly module?: string
  /** Receives the minifier's progress lines. */
  readonly print?: (line: string) => void
}

/** The smallest graph that differs. */
export interface MinifiedDifference extends MinifierResult {
  /** The script of the repro, if it was written. */
  readonly path: string | null
}

interface Settings extends MinifyDifferenceOptions {
  readonly tol: number
  readonly reference: ReferenceKind
}

/** Shrinks a graph while a backend's results differ from the reference. */
export async function minifyDifference(gm: GraphModule, inputs: readonly unknown[], one: Candidate, settings: Settings): Promise<MinifiedDifference> {
  checkOptions('minify', settings, { directory: true, module: true, print: true, tol: true, reference: true })
  const { tol, reference, print, directory } = settings
  const differs = async (candidate: GraphModule, values: readonly unknown[]): Promise<boolean> => {
    try {
      const eager = noGrad(() => tensorsIn(candidate.deepCopy({ shareTensors: true }).call(...values)))
      const want = reference === 'float64' ? noGrad(() => inFloat64(candidate, tensorsIn(values))) : eager
      const got = await one.with(candidate, values, async (run) => run(values))
      return measure(want, eager, got, magnitude(tensorsIn(values)), tol).status === 'differs'
    } catch {
      // A candidate that cannot be run is another failure.
      return false
    }
  }
  const result = await minifier(gm, inputs, differs, print === undefined ? {} : { print })
  return { ...result, path: directory === undefined ? null : write(directory, result, one.name, settings) }
}

/** Writes the folder; returns the path of the script. */
function write(directory: string, { gm, inputs }: MinifierResult, backend: string, { tol, reference, module }: Settings): string {
  const store = fileStore()
  const tensors = new Map<string, Tensor>()
  for (const [i, input] of inputs.entries()) {
    if (!(input instanceof Tensor)) throw new UnsupportedError(`minify: input ${i} is not a tensor, and the files of a repro hold only tensors.`)
    tensors.set(`input_${i}`, input)
  }
  const script = joinPath(directory, 'compare.mjs')
  store.write(joinPath(directory, 'graph.safetensors'), saveGraphModule(gm))
  store.write(joinPath(directory, 'inputs.safetensors'), writeSafetensors(tensors))
  store.write(
    script,
    [
      `// The backend '${backend}' and the reference (${reference}) give different results for this graph.`,
      '//   node compare.mjs: prints the errors by node; the exit code is 1 while the results differ',
      "import { readFileSync } from 'node:fs'",
      `import { compareBackends } from ${quote(packageSpecifier('debug', script))}`,
      `import { loadGraphModule, readSafetensors } from ${quote(packageSpecifier('interop', script))}`,
      ...(module === undefined ? [] : [`import ${quote(module)}`]),
      '',
      'const read = (name) => readFileSync(new URL(name, import.meta.url))',
      "const gm = loadGraphModule(read('graph.safetensors'))",
      "const { tensors } = readSafetensors(read('inputs.safetensors'))",
      `const inputs = Array.from({ length: tensors.size }, (_, i) => tensors.get(\`input_\${i}\`))`,
      `const result = await compareBackends(gm, inputs, { backends: [${quote(backend)}], reference: ${quote(reference)}, tol: ${tol} })`,
      'console.log(String(result))',
      'process.exitCode = result.first === null ? 0 : 1',
      '',
    ].join('\n'),
  )
  return script
}
