// `tensorfx compare`: a saved graph on several backends, and the smallest graph on which the first of them differs.
import { compareBackends } from '../debug/compare/index.ts'
import { readComparison } from '../debug/compare/folder.ts'
import { fileStore } from '../debug/fileStore.ts'
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import { installCompile } from '../install/compile.ts'
import { nearest } from '../protocol/index.ts'

const USAGE = `usage: tensorfx compare FOLDER --backends A,B [options]
  FOLDER              holds graph.safetensors (saveGraphModule) and inputs.safetensors (writeSafetensors: input_0, input_1, ...)
  --backends A,B      eager, inductor, aot_eager, onnxruntime, or a module and its export: ./mine.mjs#mine
  --tol N             the largest error; default 1e-4
  --reference KIND    float64 (default) or eager
  --minify FOLDER     writes the smallest graph on which the first backend that is not right still fails, and one that is right does not
The exit code is 1 unless every backend is right, and 2 if the command is wrong.`

const OPTIONS = ['--backends', '--tol', '--reference', '--minify'] as const
type Option = (typeof OPTIONS)[number]

interface CompareLine {
  readonly folder: string
  readonly options: ReadonlyMap<Option, string>
}

/** Throws ArgumentError for an unknown option, one without a value, and more or fewer folders than one. */
function parse(words: readonly string[]): CompareLine {
  const options = new Map<Option, string>()
  const folders: string[] = []
  const rest = [...words]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const option = OPTIONS.find((known) => known === word)
    if (option !== undefined) {
      const value = rest.shift()
      if (value === undefined) throw new ArgumentError(`${option} needs a value.`)
      options.set(option, value)
    } else if (word.startsWith('--')) {
      const near = nearest(word, OPTIONS)
      throw new ArgumentError(`unknown option '${word}'.${near === null ? '' : ` Did you mean '${near}'?`}`)
    } else folders.push(word)
  }
  const [folder, second] = folders
  if (folder === undefined || second !== undefined) throw new ArgumentError(`expected one folder, got ${folders.length}.`)
  return { folder, options }
}

/** Runs the command with the words after `compare`: what it prints, and its exit code. */
export async function runCompare(words: readonly string[]): Promise<{ readonly text: string; readonly code: number }> {
  if (words.length === 0 || words.includes('--help')) return { text: USAGE, code: words.length === 0 ? 2 : 0 }
  installCompile()
  try {
    return await compare(parse(words))
  } catch (error) {
    if (error instanceof TensorfxError) return { text: `tensorfx compare: ${error.message}\n${USAGE}`, code: 2 }
    throw error
  }
}

async function compare({ folder, options }: CompareLine): Promise<{ readonly text: string; readonly code: number }> {
  const names = options.get('--backends')?.split(',') ?? []
  if (names.length === 0) throw new ArgumentError('--backends is missing: name what to compare.')
  const tol = Number(options.get('--tol') ?? 1e-4)
  if (!(tol > 0)) throw new ArgumentError(`--tol needs a positive number, got '${options.get('--tol') ?? ''}'.`)
  const kind = options.get('--reference') ?? 'float64'
  if (kind !== 'float64' && kind !== 'eager') throw new ArgumentError(`--reference is float64 or eager, got '${kind}'.`)
  const { gm, inputs } = readComparison(fileStore(), folder)
  const result = await compareBackends(gm, inputs, { backends: names, tol, reference: kind })
  const { first } = result
  const directory = options.get('--minify')
  if (first === null || first.kind === 'not judged' || directory === undefined) return { text: String(result), code: first === null ? 0 : 1 }
  const right = [...result.culprits].find(([, culprit]) => culprit === null)?.[0]
  const small = await result.minify(first.backend, { directory, ...(right === undefined ? {} : { against: right }) })
  const nodes = `${result.gm.graph.nodes.length} nodes -> ${small.gm.graph.nodes.length}, in ${small.queries} queries`
  return { text: `${String(result)}\n\n${nodes}\nWrote the repro: node ${small.path ?? ''}`, code: 1 }
}
