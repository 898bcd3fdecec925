// From a difference between a backend and the reference to the smallest graph that shows it, and a folder that shows it again.
import { ArgumentError } from '../../errors/index.ts'
import { backendImports } from '../../dynamo/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { getRngState, setRngState } from '../../tensor/index.ts'
import { checkOptions, lineComment, quote } from '../../protocol/index.ts'
import { importBackend, isModuleBackend, whyNotNameable } from '../script/backendModule.ts'
import { signatureOf } from '../common/describeError.ts'
import { fileStore, joinPath } from '../files/fileStore.ts'
import { minifier } from '../minify/minifier.ts'
import type { MinifierResult } from '../minify/minifier.ts'
import { packageSpecifier } from '../script/reproScript.ts'
import { isOnnxRuntime } from './backends.ts'
import type { Candidate } from './backends.ts'
import { GRAPH_FILE, INPUTS_FILE, writeComparison } from './folder.ts'
import { taskOf } from './reference.ts'
import type { ReferenceKind, Task } from './reference.ts'
import type { Culprit } from './culprit.ts'
import { runsToShow, tried } from './trial.ts'

/** Options of `BackendComparison.minify`. */
export interface MinifyDifferenceOptions {
  /** Another backend of the comparison, which stays right: candidates that it gets wrong too do not count, and the repro names both. Default: none. */
  readonly against?: string
  /** The folder for the repro: the graph, its inputs, and `compare.mjs`, which compares them again. Default: nothing is written. */
  readonly directory?: string
  /** The module of a backend that is a function: a path or URL. It exports it under its name, or registers it. */
  readonly module?: string
  /** Receives the minifier's progress lines. */
  readonly print?: (line: string) => void
}

/** The smallest graph that differs. */
export interface MinifiedDifference extends MinifierResult {
  /** The script of the repro, if it was written. */
  readonly path: string | null
}

interface Settings extends Omit<MinifyDifferenceOptions, 'against'> {
  readonly tol: number
  readonly reference: ReferenceKind
  readonly against: Candidate | null
  /** What was found wrong; null if nothing was: then any difference counts. */
  readonly culprit: Culprit | null
}

/** Shrinks a graph while a backend's results differ from the reference, and those of the other backend do not. */
export async function minifyDifference(gm: GraphModule, inputs: readonly unknown[], one: Candidate, settings: Settings): Promise<MinifiedDifference> {
  checkOptions('minify', settings, { directory: true, module: true, print: true, tol: 'number', reference: true, against: true, culprit: true })
  const { tol, reference, print, directory, against } = settings
  // A script that cannot work is not written: what prevents it is said before the search.
  const names =
    directory === undefined ? null : { one: await nameInScripts(one, settings.module), against: against && (await nameInScripts(against)) }
  const { kind = 'wrong', rule = null, thrown = null } = settings.culprit ?? {}
  const status = kind === 'failed' || kind === 'flaky' ? kind : 'differs'
  const state = getRngState()
  const differs = async (candidate: GraphModule, values: readonly unknown[]): Promise<boolean> => {
    let task: Task
    try {
      task = taskOf(candidate, values, reference, state)
    } catch {
      // A candidate that eager kernels cannot run is another failure.
      return false
    }
    const made = await tried(one, task, tol, runsToShow({ status, rule }))
    const isSame = made.status === status && made.rule === rule && (status !== 'failed' || signatureOf(made.thrown) === signatureOf(thrown))
    return isSame && (against === null || (await tried(against, task, tol, 1)).status === 'ok')
  }
  const result = await minifier(gm, inputs, differs, { shrinkValues: true, ...(print === undefined ? {} : { print }) }).finally(() =>
    setRngState(state),
  )
  return { ...result, path: directory === undefined || names === null ? null : write(directory, result, names, settings) }
}

/** How a script names a backend: by its name if every program has it, otherwise by its module too. Throws ArgumentError if no script can have it. */
async function nameInScripts({ name, registered }: Candidate, module?: string): Promise<string> {
  const known = registered ?? name
  if (module !== undefined) return (await importBackend(isModuleBackend(known) ? known : `${module}#${known}`)).reference
  if (registered !== null && (isOnnxRuntime(registered) || isModuleBackend(registered))) return registered
  if (registered === null || whyNotNameable(registered) !== null)
    throw new ArgumentError(
      `minify: no script can import the backend '${name}'. Pass its module, { module: './file.mjs' }, or register it in one: registerBackend('${name}', fn, { module: import.meta.url }).`,
    )
  const [from] = backendImports(registered)
  return from === undefined ? registered : `${from}#${registered}`
}

/** Writes the folder; returns the path of the script. */
function write(
  directory: string,
  { gm, inputs }: MinifierResult,
  names: { readonly one: string; readonly against: string | null },
  { tol, reference }: Settings,
): string {
  const store = fileStore()
  const script = joinPath(directory, 'compare.mjs')
  const { one, against } = names
  const backends = against === null ? [one] : [one, against]
  writeComparison(store, directory, gm, inputs)
  store.write(
    script,
    [
      `// ${lineComment(`The backend '${one}' differs from the reference (${reference}) for this graph${against === null ? '' : `, and '${against}' does not`}.`)}`,
      '//   node compare.mjs: prints the errors by node; the exit code is 1 while that is so',
      "import { readFileSync } from 'node:fs'",
      `import { compareBackends } from ${quote(packageSpecifier('debug', script))}`,
      `import { loadGraphModule, readSafetensors } from ${quote(packageSpecifier('interop', script))}`,
      '',
      'const read = (name) => readFileSync(new URL(name, import.meta.url))',
      `const gm = loadGraphModule(read(${quote(GRAPH_FILE)}))`,
      `const { tensors } = readSafetensors(read(${quote(INPUTS_FILE)}))`,
      'const inputs = Array.from({ length: tensors.size }, (_, i) => tensors.get(`input_${i}`))',
      `const backends = [${backends.map(quote).join(', ')}]`,
      `const result = await compareBackends(gm, inputs, { backends, reference: ${quote(reference)}, tol: ${tol} })`,
      'console.log(String(result))',
      `const [isWrong${against === null ? '' : ', isOtherWrong'}] = backends.map((name) => result.culprits.get(name) !== null)`,
      `process.exitCode = isWrong${against === null ? '' : ' && !isOtherWrong'} ? 1 : 0`,
      '',
    ].join('\n'),
  )
  return script
}
