// The debugger around backends: watches each compile (after dynamo), or each forward and backward graph (after aot), and writes a script if one fails,
// crashes or computes wrong numbers. `config.reproAfter` and `config.reproLevel` say where and how much.
//   level 1: on failure write the graph as repro.mjs        level 3: write the launcher before every run (for crashes that kill the process)
//   level 2: on failure write minifier_launcher.mjs          level 4: also compare the numbers, and write the launcher if they differ
import { backendImports, config, dumpText, runnable, setAotCompilerWrapper, setBackendWrapper, withConfig } from '../dynamo/index.ts'
import type { Backend, Dumped } from '../dynamo/index.ts'
import type { GraphModule } from '../fx/index.ts'
import { Tensor } from '../tensor/index.ts'
import { AccuracyError } from './accuracyError.ts'
import { whyNotNameable } from './backendModule.ts'
import { dumpCheckpoint } from './checkpoint.ts'
import { describe, signatureOf } from './describeError.ts'
import { debugDirectory, fileStore, joinPath } from './fileStore.ts'
import type { FailureSpec } from './judge.ts'
import { log, warnOnce } from './log.ts'
import { operatorImports } from './operatorImports.ts'
import { RECORD, writeRecord } from './record.ts'
import type { RunRecord } from './record.ts'
import { launcherPaths, writeRepro } from './reproScript.ts'
import type { ReproOptions } from './reproScript.ts'
import { cloneInput, compareTwoModels } from './twoModels.ts'

type Compiled = (...inputs: readonly unknown[]) => unknown
type Where = 'dynamo' | 'aot'

/** Installs the debugger around the compiler; the composition root calls it. */
export function installDebug(): void {
  setBackendWrapper((backend, name) => wrapBackendDebug(backend, name))
  setAotCompilerWrapper((compiler, name) => wrapCompilerDebug(compiler, name))
}

/** Watches a backend as dynamo calls it. PyTorch's WrapBackendDebug. */
export function wrapBackendDebug(backend: Backend, name: string): Backend {
  return watch(backend, name, 'dynamo')
}

/** Watches a compiler of forward or backward graphs. PyTorch's wrap_compiler_debug. */
export function wrapCompilerDebug(compiler: Backend, name: string): Backend {
  return watch(compiler, name, 'aot')
}

function watch(backend: Backend, name: string, where: Where): Backend {
  const watched: Backend = (gm, exampleInputs) => {
    // Here, after dynamo, are only backward graphs: whatever belongs to the forward runs inside of a watched backend, where reproAfter is null.
    if (where === 'aot' && config.reproAfter === 'dynamo') return hinting(backend, gm, exampleInputs)
    if (config.reproAfter !== where) return backend(gm, exampleInputs)
    // Scripts are written from a copy, since the backend may change the graph.
    const original = gm.deepCopy({ shareTensors: true })
    const level = config.reproLevel
    const dump = new Dump(original, name, where)
    if (level === 3 && realInputs(exampleInputs)) dump.begin('compile', exampleInputs)
    let compiled: Compiled
    try {
      compiled = runnable(withConfig({ reproAfter: null }, () => backend(gm, exampleInputs)))
    } catch (error) {
      throw dump.failure(error, exampleInputs)
    }
    if (level === 3) dump.end('compile', 'ended')
    return (...inputs: readonly unknown[]) => {
      const saved = inputs.map(cloneInput)
      if (level === 3) dump.begin('run', saved)
      if (level === 4) dump.checkAccuracy(compiled, saved)
      let outputs: unknown
      try {
        outputs = withConfig({ reproAfter: null }, () => compiled(...inputs))
      } catch (error) {
        throw dump.failure(error, saved)
      }
      if (level === 3) dump.end('run', 'ended')
      return outputs
    }
  }
  return Object.assign(watched, { backendName: name })
}

/** Runs a backward graph that is not watched. What its backend throws says how to watch it. */
function hinting(backend: Backend, gm: GraphModule, exampleInputs: readonly unknown[]): ReturnType<Backend> {
  const hinted = (error: unknown): unknown => {
    const dumpProblem = 'this is a backward graph, which TENSORFX_REPRO_AFTER=dynamo does not watch. Set TENSORFX_REPRO_AFTER=aot.'
    if (error instanceof Error && Reflect.get(error, 'dumpProblem') === undefined) {
      Reflect.set(error, 'dumpProblem', dumpProblem)
      log.warning(`No script was written: ${dumpProblem}`)
    }
    return error
  }
  try {
    const compiled = runnable(backend(gm, exampleInputs))
    return (...inputs: readonly unknown[]) => {
      try {
        return compiled(...inputs)
      } catch (error) {
        throw hinted(error)
      }
    }
  } catch (error) {
    throw hinted(error)
  }
}

const realInputs = (inputs: readonly unknown[]): boolean => inputs.every((i) => !(i instanceof Tensor) || !i.isFake)

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

/** Dumps of one graph. */
class Dump {
  readonly #gm: GraphModule
  readonly #backend: string
  readonly #where: Where

  constructor(gm: GraphModule, backend: string, where: Where) {
    this.#gm = gm
    this.#backend = backend
    this.#where = where
  }

  #options(accuracy: FailureSpec['accuracy'], error: unknown): Omit<ReproOptions, 'command'> {
    const backendProblem = whyNotNameable(this.#backend)
    if (backendProblem !== null) warnOnce(`The script needs to be told of the backend: ${backendProblem}`)
    return {
      after: this.#where,
      spec: {
        backend: this.#backend,
        accuracy,
        checkStr: null,
        signature: error === null ? null : signatureOf(error),
        onlyFwd: this.#where === 'aot' || config.reproForwardOnly,
      },
      imports: [...new Set([...backendImports(this.#backend), ...operatorImports(this.#gm)])],
      backendProblem,
    }
  }

  /** Writes what the level asks for and returns the error with the script's path attached. */
  failure(error: unknown, inputs: readonly unknown[]): unknown {
    if (error instanceof AccuracyError) return error
    log.warning('Compiled Fx GraphModule failed. Creating script to minify the error.')
    const dumped = attempt(() => {
      const options = this.#options('none', error)
      return config.reproLevel === 1 ? dumpCheckpoint(debugDirectory(config.debugDirRoot), this.#gm, inputs, options) : this.#write(inputs, options)
    })
    if (config.reproLevel === 3) this.end('run', 'failed')
    // An error that is frozen stays as it is: the log has told where the script is.
    if (error instanceof Error) for (const [key, value] of Object.entries(dumped)) Reflect.set(error, key, value)
    return error
  }

  /** Level 3: the launcher, and the record of what is about to be done, in case that the process does not survive it. */
  begin(phase: RunRecord['phase'], inputs: readonly unknown[]): void {
    attempt(() => {
      const script = this.#write(inputs, { ...this.#options('none', null), record: RECORD, owner: this })
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

  readonly #record = (): string => joinPath(debugDirectory(config.debugDirRoot), 'minifier', RECORD)

  #write(inputs: readonly unknown[], options: Omit<ReproOptions, 'command'>): string {
    const { script, saveDir } = launcherPaths(debugDirectory(config.debugDirRoot))
    writeRepro(fileStore(), script, saveDir, this.#gm, inputs, { ...options, command: 'minify' })
    warnOnce(`Writing minified repro to:\n${script}`)
    return script
  }

  /** Level 4: compares with the graph itself. A run-time error here is reported by the run that follows. */
  checkAccuracy(compiled: Compiled, inputs: readonly unknown[]): void {
    const onlyFwd = this.#where === 'aot' || config.reproForwardOnly
    const { same, reasons } = withConfig({ reproAfter: null }, () => compareTwoModels(this.#gm, compiled, inputs, { onlyFwd }))
    if (same) return
    log.warning(
      this.#where === 'dynamo'
        ? 'Accuracy failed for the TorchDynamo produced graph. Creating script to minify the error.'
        : `Accuracy failed for the AOT Autograd graph ${this.#gm.className}`,
    )
    const dumped = attempt(() => this.#write(inputs, this.#options('accuracy', null)))
    const error = new AccuracyError(`Bad accuracy detected.${dumpText(dumped)}`, { cause: reasons.join('\n') })
    error.minifierPath = dumped.minifierPath
    throw error
  }
}
