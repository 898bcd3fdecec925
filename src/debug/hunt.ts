// From a failure to its smallest form: the minifier, with candidates judged in isolation if possible, and every step kept as a script.
import type { GraphModule } from '../fx/index.ts'
import { backendImports } from '../dynamo/index.ts'
import { operatorImports, whyNotImportable } from './operatorImports.ts'
import type { Backend } from '../dynamo/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { checkpointPaths, writeRepro } from './reproScript.ts'
import { fileStore, joinPath, workingDirectory } from './fileStore.ts'
import { Isolator } from './isolate/isolator.ts'
import type { StartHelper } from './isolate/isolator.ts'
import { nodeHelper } from './isolate/nodeHelper.ts'
import { whyNotShippable } from './isolate/protocol.ts'
import { describe, judge } from './judge.ts'
import type { FailureSpec, Outcome } from './judge.ts'
import { log } from './log.ts'
import { minifier } from './minifier.ts'
import type { MinifierResult } from './minifier.ts'

export interface HuntOptions {
  /** The failing backend: a registered name, or a function (then candidates are judged in this process). */
  readonly backend: string | Backend
  /** What counts as a failure; default 'none': the compiled graph throws. */
  readonly accuracy?: FailureSpec['accuracy']
  /** Only errors whose text contains this. */
  readonly checkStr?: string | null
  /** Which error counts (`signatureOf`); default any. */
  readonly signature?: string | null
  readonly onlyFwd?: boolean
  /** Judge candidates outside this process. Default true if possible: with child processes in Node, with `startHelper` in browsers. */
  readonly isolate?: boolean
  /** How to start an isolated helper; default a child process in Node. */
  readonly startHelper?: StartHelper
  /** Milliseconds before a candidate counts as hanging. Default 30,000. */
  readonly timeoutMs?: number
  /** A death or hang of the isolated process counts as the failure. Default false. */
  readonly deathFails?: boolean
  readonly maxGranularity?: number
  readonly skipSanity?: boolean
  /** Where the failure was seen, for the script. Default 'dynamo'. */
  readonly after?: 'dynamo' | 'aot'
  /** The run's debug folder; checkpoints go to its minifier/checkpoints. Null writes nothing. Default null. */
  readonly runDir?: string | null
  /** Receives the minifier's progress lines. Default: the debug log. */
  readonly print?: (line: string) => void
}

export interface HuntResult extends MinifierResult {
  /** The last script written, or null when nothing was. */
  readonly path: string | null
  /** Whether candidates were judged in isolation; if not, why. */
  readonly isolated: boolean
  readonly whyNotIsolated: string | null
  /** Isolated processes used: 1 unless some died or hung. */
  readonly processes: number
}

/** Shrinks a graph that a backend fails on. The graph and the inputs are not changed. */
export async function minifyBackendFailure(gm: GraphModule, inputs: readonly unknown[], options: HuntOptions): Promise<HuntResult> {
  checkOptions('minifyBackendFailure', options, {
    backend: true,
    accuracy: true,
    checkStr: true,
    signature: true,
    onlyFwd: true,
    isolate: true,
    startHelper: true,
    timeoutMs: true,
    deathFails: true,
    maxGranularity: true,
    skipSanity: true,
    after: true,
    runDir: true,
    print: true,
  })
  const print = options.print ?? log.info
  const spec: FailureSpec = {
    backend: typeof options.backend === 'string' ? options.backend : options.backend.name,
    accuracy: options.accuracy ?? 'none',
    checkStr: options.checkStr ?? null,
    signature: options.signature ?? null,
    onlyFwd: options.onlyFwd ?? false,
  }
  const imports = typeof options.backend === 'string' ? [...new Set([...backendImports(options.backend), ...operatorImports(gm)])] : null
  const start = options.startHelper ?? nodeHelper()
  const whyNot = whyNotIsolated(gm, inputs, options, start, imports)
  if (whyNot !== null && options.isolate === true) log.warning(`candidates are judged in this process: ${whyNot}`)
  const isolator =
    whyNot === null && start !== null
      ? new Isolator(start, { timeoutMs: options.timeoutMs ?? 30_000, imports: imports ?? [], deathFails: options.deathFails ?? false })
      : null
  let path: string | null = null
  let dumps = true
  const fails = async (candidate: GraphModule, values: readonly unknown[]): Promise<boolean> => {
    const outcome: Outcome = isolator === null ? judge(candidate, values, spec, options.backend) : await isolator.query(candidate, values, spec)
    if (outcome.status === 'unrelated') print(`  (candidate skipped: ${outcome.message.split('\n')[0] ?? ''})`)
    return outcome.status === 'fails'
  }
  try {
    const result = await minifier(gm, inputs, fails, {
      print,
      ...(options.maxGranularity === undefined ? {} : { maxGranularity: options.maxGranularity }),
      ...(options.skipSanity === undefined ? {} : { skipSanity: options.skipSanity }),
      dumpState: (state, values) => {
        if (options.runDir === null || options.runDir === undefined || !dumps) return
        try {
          path = dumpCheckpoint(options.runDir, state, values, spec, options.after ?? 'dynamo', imports ?? [], print)
        } catch (error) {
          // The search goes on without scripts; its result is returned as well.
          dumps = false
          log.warning(`No more checkpoints are written: ${describe(error)}`)
        }
      },
    })
    return { ...result, path, isolated: isolator !== null, whyNotIsolated: whyNot, processes: isolator?.started ?? 0 }
  } finally {
    isolator?.close()
  }
}

function whyNotIsolated(
  gm: GraphModule,
  inputs: readonly unknown[],
  options: HuntOptions,
  start: StartHelper | null,
  imports: readonly string[] | null,
): string | null {
  if (options.isolate === false) return 'isolate is false'
  if (start === null) return 'there are no child processes here; pass startHelper'
  if (imports === null) return 'the backend is a function without a name; register it with registerBackend(name, fn, { module }) to have it isolated'
  return whyNotShippable(gm, inputs) ?? whyNotImportable(gm)
}

/** Writes the state as a script, and a copy of it in the working directory as repro.mjs. Returns the copy's path. */
export function dumpCheckpoint(
  runDir: string,
  gm: GraphModule,
  inputs: readonly unknown[],
  spec: FailureSpec,
  after: 'dynamo' | 'aot',
  imports: readonly string[],
  print: (line: string) => void = log.info,
): string {
  const store = fileStore()
  const { script, saveDir } = checkpointPaths(runDir, gm.graph.nodes.length)
  const options = { after, command: 'run', spec, imports } as const
  print(`Writing checkpoint with ${gm.graph.nodes.length} nodes to ${script}`)
  writeRepro(store, script, saveDir, gm, inputs, options)
  const copy = joinPath(workingDirectory(), 'repro.mjs')
  print(`Copying repro file for convenience to ${copy}`)
  try {
    writeRepro(store, copy, saveDir, gm, inputs, options)
    return copy
  } catch (error) {
    log.warning(`No write permissions for ${copy} (${describe(error)})`)
    return script
  }
}
