// What the debugger writes of one watched graph: scripts, the launcher of the minifier, and the record of the last run.
import { config } from '../../config.ts'
import { backendImports, dumpText } from '../../dynamo/index.ts'
import type { Dumped } from '../../dynamo/index.ts'
import { announceFailure } from '../../dynamo/reports/failures.ts'
import { emit } from '../../events/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { AccuracyError } from '../closeness/accuracyError.ts'
import { whyNotNameable } from '../script/backendModule.ts'
import type { Finding } from '../judge/callCheck.ts'
import { dumpCheckpoint } from '../script/checkpoint.ts'
import { describe, signatureOf } from '../common/describeError.ts'
import { debugDirectory, fileStore, joinPath } from '../files/fileStore.ts'
import type { Calls } from '../runs/history.ts'
import type { FailureSpec } from '../judge/judge.ts'
import { log, warnOnce } from '../common/log.ts'
import { operatorImports } from '../script/operatorImports.ts'
import { RECORD, writeRecord } from '../minify/record.ts'
import type { RunRecord } from '../minify/record.ts'
import { launcherPaths, writeRepro } from '../script/reproScript.ts'
import type { ReproOptions } from '../script/reproScript.ts'

export type Where = 'dynamo' | 'aot'

/**
 * Runs what writes a script and returns its path. A failure (a full disk, no permission, an input that no file can hold) becomes a warning, since the failure of the
 * user's program is what must be seen.
 */
function attempt(write: () => string): Dumped {
  try {
    return { minifierPath: write(), dumpProblem: null }
  } catch (error) {
    const dumpProblem = describe(error)
    log.warning(`The script that reproduces this could not be written: ${dumpProblem}`)
    return { minifierPath: null, dumpProblem }
  }
}

const isHalf = (gm: GraphModule): boolean => gm.meta['half'] !== undefined
const requiresGrad = (input: unknown): boolean => input instanceof Tensor && input.requiresGrad

type Failed = Pick<FailureSpec, 'accuracy' | 'contract'>

/** Dumps of one graph. */
export class Dump {
  readonly #gm: GraphModule
  readonly #backend: string
  readonly #where: Where
  #saidUnchecked = false
  /** Whether a backward follows. One that the graph itself holds cannot be differentiated again. */
  isDifferentiated = true

  constructor(gm: GraphModule, backend: string, where: Where) {
    this.#gm = gm
    this.#backend = backend
    this.#where = where
  }

  /** What the graph is called in messages: which half of a joint graph, and its name. */
  get label(): string {
    const half: unknown = this.#gm.meta['half']
    return `the ${typeof half === 'string' ? `${half} graph` : 'graph'} ${this.#gm.className}`
  }

  /** Says, once, that the graph was not checked. */
  readonly unchecked = (why: string): void => {
    if (this.#saidUnchecked) return
    this.#saidUnchecked = true
    log.error(`Level 4 did not check ${this.label} of backend '${this.#backend}': ${why}`)
  }

  /** The options of a script. The last of the calls is the one that failed. */
  #options({ accuracy, contract = false }: Failed, error: unknown, calls: Calls): Omit<ReproOptions, 'command'> {
    const backendProblem = whyNotNameable(this.#backend)
    if (backendProblem !== null) warnOnce(`The script needs to be told of the backend: ${backendProblem}`)
    return {
      after: this.#where,
      spec: {
        backend: this.#backend,
        accuracy,
        checkStr: null,
        signature: error === null ? null : signatureOf(error),
        contract,
        // The backward, if there is one, is a graph of its own.
        onlyFwd:
          this.#where === 'aot' ||
          config.reproForwardOnly ||
          isHalf(this.#gm) ||
          ((accuracy !== 'none' || !this.isDifferentiated) && (calls.at(-1) ?? []).some(requiresGrad)),
      },
      earlier: calls.slice(0, -1),
      imports: [...new Set([...backendImports(this.#backend), ...operatorImports(this.#gm)])],
      backendProblem,
    }
  }

  /** Writes what the level asks for and returns the error with the script's path attached. */
  failure(error: unknown, calls: Calls): unknown {
    if (error instanceof AccuracyError) return error
    log.warning('Compiled Fx GraphModule failed. Creating script to minify the error.')
    const dumped = attempt(() => {
      // Level 4 makes each call again.
      const contract = config.reproLevel === 4 && calls.length > 1
      const options = this.#options({ accuracy: 'none', contract }, error, calls)
      return config.reproLevel === 1 ? this.#checkpoint(calls, options) : this.#write(calls, options)
    })
    if (config.reproLevel === 3) this.end('run', 'failed')
    // An error that is frozen stays as it is: the log has told where the script is.
    if (error instanceof Error) for (const [key, value] of Object.entries(dumped)) Reflect.set(error, key, value)
    return error
  }

  /** Level 3: the launcher, and the record of what is about to be done, in case that the process does not survive it. */
  begin(phase: RunRecord['phase'], calls: Calls): void {
    attempt(() => {
      const script = this.#write(calls, { ...this.#options({ accuracy: 'none' }, null, calls), record: RECORD, owner: this })
      writeRecord(fileStore(), this.#record(), phase, 'started')
      return script
    })
  }

  end(phase: RunRecord['phase'], state: RunRecord['state']): void {
    attempt(() => {
      writeRecord(fileStore(), this.#record(), phase, state)
      return ''
    })
  }

  /** Writes the launcher for what level 4 has found, and returns the error that says it. */
  wrong(finding: Finding, calls: Calls): AccuracyError {
    log.warning(
      this.#where === 'dynamo'
        ? 'Accuracy failed for the TorchDynamo produced graph. Creating script to minify the error.'
        : `Accuracy failed for the AOT Autograd graph ${this.#gm.className}`,
    )
    const dumped = attempt(() => {
      const options = this.#options({ accuracy: 'accuracy', contract: finding.rule !== 'numbers' }, null, calls)
      if (this.#where === 'aot') this.#checkpoint(calls, options)
      return this.#write(calls, options)
    })
    const message = `Bad accuracy detected. Backend '${this.#backend}', ${this.label}: ${finding.message}`
    const error = new AccuracyError(`${message}${dumpText(dumped)}`, { cause: finding.reasons.join('\n') })
    announceFailure('accuracy', error, this.#backend)
    error.minifierPath = dumped.minifierPath
    return error
  }

  readonly #record = (): string => joinPath(debugDirectory(config.debugDirRoot), 'minifier', RECORD)

  #checkpoint(calls: Calls, options: Omit<ReproOptions, 'command'>): string {
    const file = dumpCheckpoint(debugDirectory(config.debugDirRoot), this.#gm, calls.at(-1) ?? [], options)
    emit({ kind: 'repro', file, command: 'run' })
    return file
  }

  #write(calls: Calls, options: Omit<ReproOptions, 'command'>): string {
    const { script, saveDir } = launcherPaths(debugDirectory(config.debugDirRoot))
    writeRepro(fileStore(), script, saveDir, this.#gm, calls.at(-1) ?? [], { ...options, command: 'minify' })
    emit({ kind: 'repro', file: script, command: 'minify' })
    warnOnce(`Writing minified repro to:\n${script}`)
    return script
  }
}
