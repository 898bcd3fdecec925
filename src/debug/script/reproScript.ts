// The repro script: a graph as a readable program that runs by itself, with the code that loads its inputs.
import { VERSION } from '../../version.ts'
import type { GraphModule } from '../../fx/index.ts'
import { hostProcess, lineComment, literal, quote, scalarLiteral, targetInfo } from '../../protocol/index.ts'
import { configDifferences } from '../../config.ts'
import { InputWriter } from '../files/inputWriter.ts'
import { flatGraph, reproClass } from './reproClass.ts'
import { writtenHere } from './environment.ts'
import { joinPath } from '../files/fileStore.ts'
import type { FileStore } from '../files/fileStore.ts'
import type { Calls } from '../runs/history.ts'
import { isDeath } from '../judge/death.ts'
import { nodeModule } from '../common/node.ts'
import type { Command, TracingMode } from './commandLine.ts'
import { graphSizes } from './graphSizes.ts'
import type { FailureSpec } from '../judge/judge.ts'

export interface ReproOptions {
  /** Where the failure was seen. */
  readonly after: 'dynamo' | 'aot'
  readonly command: Command
  readonly spec: FailureSpec
  /** Modules that register the backend and custom functions. */
  readonly imports: readonly string[]
  /** The inputs of the calls before the failing one, oldest first. Default none. */
  readonly earlier?: Calls
  /** What a reader must know beside the code. */
  readonly notes?: readonly string[]
  /** How often `run` runs a failure that comes and goes. Default 1. */
  readonly runs?: number
  /** The name of the file beside the script that says what the run that wrote it came to; see record.ts. */
  readonly record?: string
  /** Why a script cannot find the backend; it then asks for `--backend`. */
  readonly backendProblem?: string | null
  /** Leave out versions, settings and whatever else differs between two runs of one program. Default false. */
  readonly stableOutput?: boolean
  /** On which tensors `run` and the rest run the graph first; see runRepro. Default 'real'. */
  readonly tracingMode?: TracingMode
  /** The scripts of an owner replace each other: storages that only its last one needed are removed. Default: all are kept. */
  readonly owner?: object
}

/** What a script is made of. `saveDir` is where storages go that are too large for it; null: all data is in the script. */
type Repro = readonly [saveDir: string | null, gm: GraphModule, inputs: readonly unknown[], options: ReproOptions]

/** The storages that the last script of each owner needs. */
const needed = new Map<object, ReadonlySet<string>>()

/** Removes the storages that were needed by the owner's last script, and by no script that is left. */
function replaceStorages(store: FileStore, owner: object, paths: readonly string[]): void {
  const before = needed.get(owner) ?? []
  needed.set(owner, new Set(paths))
  for (const path of before) if (![...needed.values()].some((other) => other.has(path))) store.remove?.(path)
}

/**
 * Writes the script and its inputs: `path` is the script, storages that are too large for it go to `saveDir`; null: all data is in the script. Returns the script's text. If that throws, the files are
 * those from before.
 */
export function writeRepro(store: FileStore, path: string, ...repro: Repro): string {
  const source = new ReproSource(store, path, ...repro)
  const { owner } = repro[3]
  return orTakenBack(source, () => {
    const text = source.text()
    store.write(path, text)
    if (owner !== undefined) replaceStorages(store, owner, source.paths())
    return text
  })
}

/** A script that is not written to any file. Without a store, it holds all data itself. */
export function reproText(store: FileStore | null, path: string | null, ...repro: Repro): string {
  const source = new ReproSource(store, path, ...repro)
  return orTakenBack(source, () => source.text())
}

/** Removes the files that a source has written if what needs them fails. */
function orTakenBack(source: ReproSource, make: () => string): string {
  try {
    return make()
  } catch (error) {
    source.takeBack()
    throw error
  }
}

/** A script and the storages beside it. */
class ReproSource {
  readonly #path: string | null
  readonly #saveDir: string | null
  readonly #gm: GraphModule
  readonly #calls: Calls
  readonly #options: ReproOptions
  readonly #args: InputWriter
  readonly #members: InputWriter

  constructor(store: FileStore | null, path: string | null, ...[saveDir, gm, inputs, options]: Repro) {
    this.#path = path
    this.#saveDir = saveDir
    const flat = flatGraph(gm, inputs)
    this.#gm = flat.gm
    this.#calls = [...(options.earlier ?? []).map((values) => flatGraph(gm, values).inputs), flat.inputs]
    this.#options = options
    const wholeStorages = addressesStorage(flat.gm)
    this.#args = new InputWriter(store, saveDir, { wholeStorages })
    this.#members = new InputWriter(store, saveDir, { wholeStorages })
  }

  /** The files of the storages. */
  paths(): readonly string[] {
    return [...this.#args.paths(), ...this.#members.paths()]
  }

  /** Removes the storages that were not there before. */
  takeBack(): void {
    this.#args.takeBack()
    this.#members.takeBack()
  }

  text(): string {
    const { imports, spec, backendProblem = null, stableOutput = false } = this.#options
    const names = this.#gm.graph.findNodes({ op: 'placeholder' }).map((n) => n.target)
    const sizes = graphSizes(this.#gm, this.#calls.at(-1) ?? [])
    for (const [call, inputs] of this.#calls.entries()) {
      if (call > 0) this.#args.nextCall()
      inputs.forEach((value, i) => this.#args.add(names[i] ?? `arg${i}`, value, sizes?.inputs[i]))
    }
    const { lines, functions, usesOperator } = reproClass(this.#gm, this.#members)
    const packageUrl = (entry: string): string => (this.#path === null ? packageName(entry) : packageSpecifier(entry, this.#path))
    const notes = [
      ...(backendProblem === null ? [] : [`Needs --backend: ${backendProblem}.`]),
      ...(this.#calls.length === 1 ? [] : [`It calls the graph ${this.#calls.length} times.`]),
      ...(sizes?.notes ?? []),
      ...(this.#options.notes ?? []),
    ]
    const name = this.#path === null ? 'repro.mjs' : this.#path.slice(this.#path.lastIndexOf('/') + 1)
    return [
      `// A failure of the backend '${lineComment(spec.backend)}', as a program of its own. Written by tensorfx${stableOutput ? '' : ` ${VERSION}${runtimeVersion()}`}.`,
      ...notes.map((line) => `// ${lineComment(line)}`),
      `//   node ${lineComment(name)} [run | minify | analyze | minifier-query] [--help]`,
      `import { config, nn, torch${usesOperator ? ', operator' : ''} } from ${quote(packageUrl(''))}`,
      `import { runRepro } from ${quote(packageUrl('debug'))}`,
      ...(functions.size === 0 ? [] : [`import { registered } from ${quote(packageUrl('interop'))}`]),
      ...imports.map((url) => `import ${quote(url)}`),
      '',
      ...[...functions].map(([variable, registered]) => `const ${variable} = registered(${quote(registered)})`),
      ...(functions.size === 0 ? [] : ['']),
      ...(stableOutput ? [] : configLines()),
      'class Repro extends nn.Module {',
      ...indented(lines),
      '}',
      '',
      'function loadArgs(reader) {',
      ...indented(this.#args.lines()),
      '}',
      'loadArgs.version = 0',
      '',
      'await runRepro(Repro, loadArgs, {',
      ...indented(this.#settings()),
      '})',
      '',
    ].join('\n')
  }

  /** The options of runRepro. */
  #settings(): readonly string[] {
    const { after, command, spec, record, imports, runs = 1, backendProblem = null, stableOutput = false, tracingMode = 'real' } = this.#options
    const saveDir =
      this.#saveDir === null || this.#path === null
        ? literal(this.#saveDir)
        : `new URL(${quote(relativeAddress(this.#path, this.#saveDir))}, import.meta.url)`
    return [
      `after: ${quote(after)},`,
      `command: ${quote(command)},`,
      `backend: ${scalarLiteral(backendProblem === null ? spec.backend : null)},`,
      `accuracy: ${quote(spec.accuracy)},`,
      `checkStr: ${scalarLiteral(spec.checkStr)},`,
      `signature: ${scalarLiteral(spec.signature)},`,
      `onlyFwd: ${spec.onlyFwd},`,
      ...(spec.contract === true ? ['contract: true,'] : []),
      ...(isDeath(spec.death) ? [`death: ${quote(spec.death)},`] : []),
      ...(runs > 1 ? [`runs: ${runs},`] : []),
      ...(tracingMode === 'real' ? [] : [`tracingMode: ${quote(tracingMode)},`]),
      ...(record === undefined ? [] : [`record: new URL(${quote(`./${record}`)}, import.meta.url),`]),
      `imports: ${literal(imports)},`,
      `saveDir: ${saveDir},`,
      ...(stableOutput ? [] : [`written: ${literal(writtenHere())},`]),
    ]
  }
}

const indented = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => line.split('\n')).map((line) => (line === '' ? '' : `  ${line}`))

/** Settings that decide what the graph does; where and whether scripts are written is none of them. */
function configLines(): string[] {
  const entries = Object.entries(configDifferences()).filter(([key]) => !['reproAfter', 'reproLevel', 'debugDirRoot'].includes(key))
  return entries.length === 0 ? [] : [`Object.assign(config, ${literal(Object.fromEntries(entries))})`, '']
}

/** Whether a graph names positions in the storage of a tensor. */
const addressesStorage = (gm: GraphModule): boolean =>
  [...gm.graph.nodes].some((n) =>
    /as_?strided/i.test(n.op === 'call_function' ? (targetInfo(n.target)?.name ?? '') : n.op === 'call_method' ? n.target : ''),
  )

const runtimeVersion = (): string => {
  const version = hostProcess()?.version
  return version === undefined ? '' : ` on Node ${version}`
}

const packageName = (entry: string): string => (entry === '' ? 'tensorfx' : `tensorfx/${entry}`)

/** `tensorfx` if that resolves from the script's folder, otherwise the address of this package. */
export function packageSpecifier(entry: string, scriptPath: string): string {
  const specifier = packageName(entry)
  const modules = nodeModule('node:module')
  const urls = nodeModule('node:url')
  if (modules === null || urls === null) return specifier
  // From src/debug, where tests run, and from dist/debug.
  const here = new URL(entry === '' ? '../../../dist/index.js' : `../../../dist/entries/${entry}.js`, import.meta.url).href
  try {
    const found = modules.createRequire(urls.pathToFileURL(scriptPath)).resolve(specifier)
    if (urls.pathToFileURL(found).href === here) return specifier
  } catch {
    // Not installed there.
  }
  return here
}

/** The way from a script to a folder, as the relative address that `new URL` takes. */
function relativeAddress(from: string, to: string): string {
  const paths = nodeModule('node:path')
  const path = paths === null ? to : paths.relative(paths.dirname(from), to).replaceAll('\\', '/')
  if (path === '') return './'
  const address = path.split('/').map(encodeURIComponent).join('/')
  if (address === '') return './'
  return `${address.startsWith('.') ? address : `./${address}`}/`
}

/** Where the script and the storages of a dump are. */
export interface DumpPaths {
  readonly script: string
  readonly saveDir: string
}

export const launcherPaths = (runDir: string): DumpPaths => ({
  script: joinPath(runDir, 'minifier', 'minifier_launcher.mjs'),
  saveDir: joinPath(runDir, 'minifier', 'checkpoints'),
})
export const leadPaths = (runDir: string, number: number): DumpPaths => ({
  script: joinPath(runDir, 'minifier', 'leads', `lead_${number}.mjs`),
  saveDir: joinPath(runDir, 'minifier', 'checkpoints'),
})
export const checkpointPaths = (runDir: string, nodes: number): DumpPaths => ({
  script: joinPath(runDir, 'minifier', 'checkpoints', `${nodes}.mjs`),
  saveDir: joinPath(runDir, 'minifier', 'checkpoints'),
})
