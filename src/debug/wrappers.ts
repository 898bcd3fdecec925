// The debugger around backends: watches each compile (after dynamo), or each forward and backward graph (after aot), and writes a script if one fails,
// crashes or computes wrong numbers. `config.reproAfter` and `config.reproLevel` say where and how much.
//   level 1: on failure write the graph as repro.mjs        level 3: write the launcher before every run (for crashes that kill the process)
//   level 2: on failure write minifier_launcher.mjs          level 4: also compare the numbers, and write the launcher if they differ
import { config, dumpText, setAotCompilerWrapper, setBackendWrapper, withConfig, backendImports, runnable } from '../dynamo/index.ts'
import type { Backend, Dumped } from '../dynamo/index.ts'
import type { GraphModule } from '../fx/index.ts'
import { Tensor } from '../tensor/index.ts'
import { debugDirectory, fileStore } from './fileStore.ts'
import { dumpCheckpoint } from './hunt.ts'
import { describe, signatureOf } from './judge.ts'
import type { FailureSpec } from './judge.ts'
import { log } from './log.ts'
import { operatorImports } from './operatorImports.ts'
import { launcherPaths, writeRepro } from './reproScript.ts'
import { AccuracyError } from './runRepro.ts'
import { cloneInput, runFwdMaybeBwd, sameTwoModels } from './twoModels.ts'

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
    if (config.reproAfter !== where) return backend(gm, exampleInputs)
    // Scripts are written from a copy, since the backend may change the graph.
    const original = gm.deepCopy({ shareTensors: true })
    const level = config.reproLevel
    const dump = new Dump(original, name, where)
    if (level >= 3 && realInputs(exampleInputs)) dump.launcher(exampleInputs, 'none', null)
    let compiled: Compiled
    try {
      compiled = runnable(withConfig({ reproAfter: null }, () => backend(gm, exampleInputs)))
    } catch (error) {
      throw dump.failure(error, exampleInputs, 'Compiled Fx GraphModule failed. Creating script to minify the error.')
    }
    return (...inputs: readonly unknown[]) => {
      const saved = inputs.map(cloneInput)
      if (level === 3) dump.launcher(saved, 'none', null)
      if (level === 4) dump.checkAccuracy(compiled, saved)
      try {
        return withConfig({ reproAfter: null }, () => compiled(...inputs))
      } catch (error) {
        throw dump.failure(error, saved, 'Compiled Fx GraphModule failed. Creating script to minify the error.')
      }
    }
  }
  return Object.assign(watched, { backendName: name })
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
  #accurate = false

  constructor(gm: GraphModule, backend: string, where: Where) {
    this.#gm = gm
    this.#backend = backend
    this.#where = where
  }

  #imports(): readonly string[] {
    return [...new Set([...backendImports(this.#backend), ...operatorImports(this.#gm)])]
  }

  #spec(accuracy: FailureSpec['accuracy'], error: unknown): FailureSpec {
    return {
      backend: this.#backend,
      accuracy,
      checkStr: null,
      signature: error === null ? null : signatureOf(error),
      onlyFwd: this.#where === 'aot' || config.reproForwardOnly,
    }
  }

  /** Writes what the level asks for and returns the error with the script's path attached. */
  failure(error: unknown, inputs: readonly unknown[], warning: string): unknown {
    if (error instanceof AccuracyError) return error
    log.warning(warning)
    const dumped = attempt(() => {
      const spec = this.#spec('none', error)
      return config.reproLevel === 1
        ? dumpCheckpoint(debugDirectory(config.debugDirRoot), this.#gm, inputs, spec, this.#where, this.#imports())
        : this.#write(inputs, spec)
    })
    // An error that is frozen stays as it is: the log has told where the script is.
    if (error instanceof Error) for (const [key, value] of Object.entries(dumped)) Reflect.set(error, key, value)
    return error
  }

  launcher(inputs: readonly unknown[], accuracy: FailureSpec['accuracy'], error: unknown): Dumped {
    return attempt(() => this.#write(inputs, this.#spec(accuracy, error)))
  }

  #write(inputs: readonly unknown[], spec: FailureSpec): string {
    const { script, saveDir } = launcherPaths(debugDirectory(config.debugDirRoot))
    writeRepro(fileStore(), script, saveDir, this.#gm, inputs, {
      after: this.#where,
      command: 'minify',
      spec,
      imports: this.#imports(),
    })
    log.warning(`Writing minified repro to:\n${script}`)
    return script
  }

  /** Level 4: compares with the graph itself. A run-time error here is reported by the run that follows. */
  checkAccuracy(compiled: Compiled, inputs: readonly unknown[]): void {
    if (this.#accurate) return
    const onlyFwd = this.#where === 'aot' || config.reproForwardOnly
    const equal = withConfig({ reproAfter: null }, () => {
      try {
        runFwdMaybeBwd(compiled, inputs, { onlyFwd })
      } catch {
        return true
      }
      return sameTwoModels(this.#gm, compiled, inputs, { onlyFwd })
    })
    if (equal) {
      this.#accurate = true
      return
    }
    log.warning(
      this.#where === 'dynamo'
        ? 'Accuracy failed for the TorchDynamo produced graph. Creating script to minify the error.'
        : `Accuracy failed for the AOT Autograd graph ${this.#gm.constructor.name}`,
    )
    const error = new AccuracyError('Bad accuracy detected.')
    const dumped = this.launcher(inputs, 'accuracy', null)
    error.minifierPath = dumped.minifierPath
    error.message += dumpText(dumped)
    throw error
  }
}
