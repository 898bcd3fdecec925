// Scripts for any graph and its inputs, whoever found that it fails. In pages too: the text holds everything, and can become a Blob or a download.
// PyTorch's torch._dynamo.repro.after_aot: save_graph_repro, generate_standalone_repro, dump_to_minify, dump_compiler_graph_state, isolate_fails, inductor_fails.
import { config } from '../../config.ts'
import { backendImports } from '../../dynamo/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Graph, GraphModule } from '../../fx/index.ts'
import { checkArgument, checkArray, checkCount, checkOptions, checkPositive, checkString } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { whyNotNameable } from '../script/backendModule.ts'
import { dumpCheckpoint } from '../script/checkpoint.ts'
import type { Command, TracingMode } from '../script/commandLine.ts'
import { debugDirectory, fileStore, joinPath } from '../files/fileStore.ts'
import { Isolator } from '../isolate/isolator.ts'
import type { Calls } from '../runs/history.ts'
import type { StartHelper } from '../isolate/helper.ts'
import { nodeHelper } from '../isolate/nodeHelper.ts'
import { whyNotShippable } from '../isolate/protocol.ts'
import { judge } from '../judge/judge.ts'
import type { FailureSpec } from '../judge/judge.ts'
import { log } from '../common/log.ts'
import { operatorImports } from '../script/operatorImports.ts'
import { launcherPaths, reproText, writeRepro } from '../script/reproScript.ts'
import type { ReproOptions } from '../script/reproScript.ts'

/** Options of {@link saveGraphRepro} and its relatives: what fails, and how it is judged. */
export interface GraphReproOptions {
  /** The backend, a registered name. With the suffix `_accuracy`, wrong numbers are the failure. Default 'inductor'. */
  readonly compilerName?: string
  /** Leave out versions, settings and whatever else differs between two runs. Default false. */
  readonly stableOutput?: boolean
  /** Folder for data that is too large for the script, relative to the working directory. Null: all data is in the script. Default null. */
  readonly saveDir?: string | null
  /** The script's default command. Default 'run'. */
  readonly command?: Command
  /** What counts as the failure: true or 'accuracy' for wrong numbers, 'strict_accuracy' for any difference, false or 'none' for errors. Default: as `compilerName` says. */
  readonly accuracy?: boolean | FailureSpec['accuracy'] | null
  /** The inputs of the calls before the failing one, oldest first, for a failure that needs them. Default none. */
  readonly earlier?: Calls
  /** 'fake': the graph runs on fake tensors first; 'symbolic': on fake tensors with symbols for sizes. Default 'real'. */
  readonly tracingMode?: TracingMode | null
  /** Only errors that contain this count. */
  readonly checkStr?: string | null
  /** Data is always named by its SHA-1, which PyTorch calls stable. */
  readonly stableHash?: boolean
  /** Where the failure was seen. Default 'aot': forward and backward are graphs of their own. 'dynamo' runs the backward of the graph too. */
  readonly after?: 'dynamo' | 'aot'
}

/**
 * A script that runs a graph with its inputs on a backend, as text. Data is in the text, or in files if `saveDir` is given. PyTorch's save_graph_repro, which writes to a file.
 * Throws ArgumentError for inputs, modules and functions that no script can hold.
 *
 *     const text = saveGraphRepro(gm, [x], { compilerName: 'inductor', accuracy: true })
 */
export function saveGraphRepro(graph: Graph | GraphModule, inputs: readonly unknown[], options: GraphReproOptions = {}): string {
  checkCount('saveGraphRepro', arguments, 3)
  const gm = moduleOf('saveGraphRepro', graph, inputs)
  checkOptions('saveGraphRepro', options, {
    compilerName: true,
    stableOutput: 'boolean',
    saveDir: true,
    command: true,
    accuracy: true,
    tracingMode: true,
    checkStr: true,
    stableHash: 'boolean',
    after: true,
    earlier: true,
  })
  const { saveDir = null, earlier = [] } = options
  checkArray('saveGraphRepro', 'earlier', earlier)
  earlier.forEach((values, call) => checkArray('saveGraphRepro', `earlier[${call}]`, values))
  if (saveDir !== null) checkString('saveGraphRepro', 'saveDir', saveDir)
  return reproText(saveDir === null ? null : fileStore(), null, saveDir, gm, inputs, settings('saveGraphRepro', gm, options))
}

/** A script that needs no other file, as text; it is also written to `savePath` if that is given. PyTorch's generate_standalone_repro. */
export function generateStandaloneRepro(
  graph: Graph | GraphModule,
  inputs: readonly unknown[],
  options: { readonly savePath?: string | null } = {},
): string {
  checkCount('generateStandaloneRepro', arguments, 3)
  const where = 'generateStandaloneRepro'
  const gm = moduleOf(where, graph, inputs)
  checkOptions(where, options, { savePath: true })
  const { savePath = null } = options
  if (savePath === null) return saveGraphRepro(gm, inputs)
  checkString(where, 'savePath', savePath)
  const text = writeRepro(fileStore(), savePath, null, gm, inputs, settings(where, gm, {}))
  log.info(`Saved standalone repro to ${savePath}`)
  return text
}

/** Writes the launcher of the minifier into {@link minifierDir}. Returns its path. PyTorch's dump_to_minify. */
export function dumpToMinify(
  graph: Graph | GraphModule,
  inputs: readonly unknown[],
  compilerName: string,
  options: Pick<GraphReproOptions, 'accuracy'> = {},
): string {
  checkCount('dumpToMinify', arguments, 4)
  const gm = moduleOf('dumpToMinify', graph, inputs)
  checkOptions('dumpToMinify', options, { accuracy: true })
  const { script, saveDir } = launcherPaths(debugDirectory(config.debugDirRoot))
  writeRepro(fileStore(), script, saveDir, gm, inputs, settings('dumpToMinify', gm, { ...options, compilerName, command: 'minify' }))
  return script
}

/** Writes the graph as a script into `checkpoints` of {@link minifierDir}, and a copy of it as repro.mjs into the working directory. Returns the copy's path. PyTorch's dump_compiler_graph_state. */
export function dumpCompilerGraphState(
  graph: Graph | GraphModule,
  inputs: readonly unknown[],
  compilerName: string,
  options: Pick<GraphReproOptions, 'accuracy'> = {},
): string {
  checkCount('dumpCompilerGraphState', arguments, 4)
  const where = 'dumpCompilerGraphState'
  const gm = moduleOf(where, graph, inputs)
  checkOptions(where, options, { accuracy: true })
  return dumpCheckpoint(debugDirectory(config.debugDirRoot), gm, inputs, settings(where, gm, { ...options, compilerName }))
}

/** The folder of the launchers and checkpoints that this process writes. PyTorch's minifier_dir. */
export const minifierDir = (): string => joinPath(debugDirectory(config.debugDirRoot), 'minifier')

/** Options of {@link isolateFails}. */
export interface IsolateFailsOptions extends Pick<GraphReproOptions, 'accuracy' | 'checkStr'> {
  /** How to start a helper; default a child process in Node. */
  readonly startHelper?: StartHelper
  /** Milliseconds before the graph counts as hanging. Default 30,000. */
  readonly timeoutMs?: number
}

/**
 * Whether a graph fails on a backend, judged in a process of its own; the end of that process is a failure too. PyTorch's isolate_fails. Throws ArgumentError if there are no
 * other processes here, or if they cannot get the graph.
 */
export async function isolateFails(
  graph: Graph | GraphModule,
  inputs: readonly unknown[],
  compilerName: string,
  options: IsolateFailsOptions = {},
): Promise<boolean> {
  checkCount('isolateFails', arguments, 4)
  const where = 'isolateFails'
  const gm = moduleOf(where, graph, inputs)
  checkOptions(where, options, { accuracy: true, checkStr: true, startHelper: true, timeoutMs: 'number' })
  const start = options.startHelper ?? nodeHelper()
  const { accuracy = null, checkStr = null, timeoutMs } = options
  const { spec, imports } = settings(where, gm, { compilerName, accuracy, checkStr })
  const whyNot =
    start === null ? 'there are no child processes here; pass startHelper' : (whyNotNameable(spec.backend) ?? whyNotShippable(gm, inputs))
  if (start === null || whyNot !== null) throw new ArgumentError(`${where}: the graph cannot be judged elsewhere: ${whyNot}.`)
  if (timeoutMs !== undefined) checkPositive(where, 'options.timeoutMs', timeoutMs)
  const isolator = new Isolator(start, { imports, deathFails: true })
  try {
    return (await isolator.query(gm, inputs, spec, timeoutMs)).status === 'fails'
  } finally {
    isolator.close()
  }
}

/** Whether inductor fails to compile or to run a graph that runs eagerly, with an error that contains `checkStr`. PyTorch's inductor_fails. */
export function inductorFails(graph: Graph | GraphModule, inputs: readonly unknown[], checkStr: string | null = null): boolean {
  checkCount('inductorFails', arguments, 3)
  const gm = moduleOf('inductorFails', graph, inputs)
  return judge(gm, inputs, settings('inductorFails', gm, { accuracy: 'none', checkStr }).spec).status === 'fails'
}

/** The module of a graph. Throws ArgumentError for anything else, and unless there is an array of inputs. */
function moduleOf(where: string, graph: Graph | GraphModule, inputs: readonly unknown[]): GraphModule {
  checkArray(where, 'inputs', inputs)
  if (!(graph instanceof Graph)) {
    checkGraphModule(where, graph, 'graph')
    return graph
  }
  const { owningModule } = graph
  return owningModule instanceof GraphModule ? owningModule : new GraphModule({}, graph)
}

const COMMANDS: readonly Command[] = ['run', 'minify', 'analyze', 'minifier-query', 'get_args']

/** The options of a script. */
function settings(where: string, gm: GraphModule, options: GraphReproOptions): ReproOptions {
  const { compilerName = 'inductor', command = 'run', checkStr = null, after = 'aot', stableOutput = false, earlier = [] } = options
  const tracingMode = options.tracingMode ?? 'real'
  checkString(where, 'compilerName', compilerName)
  checkArgument(COMMANDS.includes(command), where, 'command', `one of ${COMMANDS.join(', ')}`, command)
  checkArgument(after === 'aot' || after === 'dynamo', where, 'after', "'aot' or 'dynamo'", after)
  checkArgument(typeof stableOutput === 'boolean', where, 'stableOutput', 'true or false', stableOutput)
  if (checkStr !== null) checkString(where, 'checkStr', checkStr)
  checkArgument(['real', 'fake', 'symbolic'].includes(tracingMode), where, 'tracingMode', "'real', 'fake' or 'symbolic'", tracingMode)
  const backend = compilerName.replace(/_accuracy$/, '')
  const accuracy = accuracyOf(where, options.accuracy ?? compilerName !== backend)
  return {
    after,
    command,
    spec: { backend, accuracy, checkStr, signature: null, onlyFwd: after === 'aot' },
    imports: [...new Set([...backendImports(backend), ...operatorImports(gm)])],
    backendProblem: whyNotNameable(backend),
    stableOutput,
    tracingMode,
    earlier,
  }
}

function accuracyOf(where: string, accuracy: boolean | FailureSpec['accuracy']): FailureSpec['accuracy'] {
  if (typeof accuracy === 'boolean') return accuracy ? 'accuracy' : 'none'
  checkArgument(
    ['none', 'accuracy', 'strict_accuracy'].includes(accuracy),
    where,
    'accuracy',
    "true, false, 'none', 'accuracy' or 'strict_accuracy'",
    accuracy,
  )
  return accuracy
}
