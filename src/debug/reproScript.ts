// The repro script: a graph as a readable program that runs by itself, with the code that loads its inputs.
import { VERSION } from '../version.ts'
import type { GraphModule } from '../fx/index.ts'
import { hostProcess, lineComment, literal, quote, scalarLiteral, targetInfo } from '../protocol/index.ts'
import { configDifferences } from '../dynamo/index.ts'
import { InputWriter } from './contentStore.ts'
import { joinPath } from './fileStore.ts'
import type { FileStore } from './fileStore.ts'
import { isDeath } from './death.ts'
import { nodeModule } from './node.ts'
import type { FailureSpec } from './judge.ts'

export interface ReproOptions {
  /** Where the failure was seen. */
  readonly after: 'dynamo' | 'aot'
  readonly command: 'run' | 'minify'
  readonly spec: FailureSpec
  /** Modules that register the backend and custom functions. */
  readonly imports: readonly string[]
  /** What a reader must know beside the code. */
  readonly notes?: readonly string[]
  /** How often `run` runs a failure that comes and goes. Default 1. */
  readonly runs?: number
  /** The name of the file beside the script that says what the run that wrote it came to; see record.ts. */
  readonly record?: string
  /** Why a script cannot find the backend; it then asks for `--backend`. */
  readonly backendProblem?: string | null
  /** The scripts of an owner replace each other: storages that only its last one needed are removed. Default: all are kept. */
  readonly owner?: object
}

/** The storages that the last script of each owner needs. */
const needed = new Map<object, ReadonlySet<string>>()

/** Removes the storages that were needed by the owner's last script, and by no script that is left. */
function replaceStorages(store: FileStore, owner: object, paths: readonly string[]): void {
  const before = needed.get(owner) ?? []
  needed.set(owner, new Set(paths))
  for (const path of before) if (![...needed.values()].some((other) => other.has(path))) store.remove?.(path)
}

/**
 * Writes the script and its inputs: `path` is the script, the storages go to `saveDir`. Returns the script's text. If that throws, the files are those from before.
 */
export function writeRepro(
  store: FileStore,
  path: string,
  saveDir: string,
  gm: GraphModule,
  inputs: readonly unknown[],
  options: ReproOptions,
): string {
  const args = new InputWriter(store, saveDir)
  const attributes = new InputWriter(store, saveDir)
  try {
    const names = gm.graph.findNodes({ op: 'placeholder' }).map((n) => n.target)
    inputs.forEach((value, i) => args.add(names[i] ?? `arg${i}`, value))
    const text = reproText(gm, args, attributes, path, saveDir, options)
    store.write(path, text)
    if (options.owner !== undefined) replaceStorages(store, options.owner, [...args.paths(), ...attributes.paths()])
    return text
  } catch (error) {
    args.takeBack()
    attributes.takeBack()
    throw error
  }
}

function reproText(gm: GraphModule, inputs: InputWriter, attributes: InputWriter, path: string, saveDir: string, options: ReproOptions): string {
  const members = attributePaths(gm).map(
    (name) => `this.registerBuffer(${quote(name)}, ${attributes.expression(name, gm.attribute(name)).replace('reader.tensor', 'reader.load')})`,
  )
  const constructor =
    members.length === 0
      ? []
      : ['  constructor(reader) {', '    super()', ...attributes.lines().map((l) => `    ${l}`), ...members.map((l) => `    ${l}`), '  }', '']
  const forward = gm.code
    .trim()
    .replace(/^function\s+/, '')
    .split('\n')
    .map((l) => `  ${l}`)
  const packageUrl = (entry: string): string => packageSpecifier(entry, path)
  const { after, command, spec, record, runs = 1, backendProblem = null } = options
  const notes = [...(backendProblem === null ? [] : [`Needs --backend: ${backendProblem}.`]), ...(options.notes ?? [])]
  const relative = relativeAddress(path, saveDir)
  return [
    `// A failure of the backend '${lineComment(spec.backend)}', as a program of its own. Written by tensorfx ${VERSION}${runtimeVersion()}.`,
    ...notes.map((line) => `// ${lineComment(line)}`),
    `//   node ${lineComment(path.slice(path.lastIndexOf('/') + 1))} [run | minify | analyze] [--accuracy | --no-accuracy] [--isolate | --no-isolate] [--help]`,
    `import { config, nn, torch${usesOperator(gm) ? ', operator' : ''} } from ${quote(packageUrl(''))}`,
    `import { runRepro } from ${quote(packageUrl('debug'))}`,
    ...options.imports.map((url) => `import ${quote(url)}`),
    '',
    ...configLines(),
    'class Repro extends nn.Module {',
    ...constructor,
    ...forward,
    '}',
    '',
    'function loadArgs(reader) {',
    ...inputs.lines().map((l) => `  ${l}`),
    '}',
    'loadArgs.version = 0',
    '',
    'await runRepro(Repro, loadArgs, {',
    `  after: ${quote(after)},`,
    `  command: ${quote(command)},`,
    `  backend: ${scalarLiteral(backendProblem === null ? spec.backend : null)},`,
    `  accuracy: ${quote(spec.accuracy)},`,
    `  checkStr: ${scalarLiteral(spec.checkStr)},`,
    `  signature: ${scalarLiteral(spec.signature)},`,
    `  onlyFwd: ${spec.onlyFwd},`,
    ...(isDeath(spec.death) ? [`  death: ${quote(spec.death)},`] : []),
    ...(runs > 1 ? [`  runs: ${runs},`] : []),
    ...(record === undefined ? [] : [`  record: new URL(${quote(`./${record}`)}, import.meta.url),`]),
    `  imports: ${literal(options.imports)},`,
    `  saveDir: new URL(${quote(relative)}, import.meta.url),`,
    '})',
    '',
  ].join('\n')
}

function configLines(): string[] {
  const entries = Object.entries(configDifferences()).filter(([key]) => key !== 'reproAfter' && key !== 'reproLevel')
  return entries.length === 0 ? [] : [`Object.assign(config, ${literal(Object.fromEntries(entries))})`, '']
}

const usesOperator = (gm: GraphModule): boolean =>
  [...gm.graph.nodes].some((n) => n.op === 'call_function' && targetInfo(n.target)?.name.startsWith('operator.') === true)

const attributePaths = (gm: GraphModule): string[] => [...new Set(gm.graph.findNodes({ op: 'get_attr' }).map((n) => n.target))]

const runtimeVersion = (): string => {
  const version = hostProcess()?.version
  return version === undefined ? '' : ` on Node ${version}`
}

/** `tensorfx` if that resolves from the script's folder, otherwise the address of this package. */
export function packageSpecifier(entry: string, scriptPath: string): string {
  const specifier = entry === '' ? 'tensorfx' : `tensorfx/${entry}`
  const modules = nodeModule('node:module')
  const urls = nodeModule('node:url')
  if (modules === null || urls === null) return specifier
  // From src/debug, where tests run, and from dist/debug.
  const here = new URL(entry === '' ? '../../dist/index.js' : `../../dist/entries/${entry}.js`, import.meta.url).href
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
