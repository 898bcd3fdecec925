// What counts as a pass over a GraphModule, and how all kinds of it become a Pass, which is what runs: functions, Transformers and Interpreters, and PyTorch's classes
// (torch.fx.passes.infra.pass_base).
import { ArgumentError } from '../../../errors/index.ts'
import { isVerifying, replaced, runPasses as run } from '../../../pipeline/index.ts'
import type { Pass, PassFacts, PassObserver, PassesResult, RunPassesOptions } from '../../../pipeline/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import {
  checkArgument,
  checkArray,
  checkCallable,
  checkCount,
  checkOptions,
  isClass,
  isFunction,
  isObject,
  withName,
} from '../../../protocol/index.ts'
import { GraphModule } from '../../run/graphModule.ts'
import type { Interpreter } from '../../run/interpreter.ts'
import { Transformer } from '../../trace/transformer.ts'

/** The result of a pass in PyTorch's form: the module (the same or another one), and whether anything changed. */
export class PassResult {
  readonly graphModule: GraphModule
  readonly modified: boolean

  constructor(graphModule: GraphModule, modified: boolean) {
    checkGraphModule('PassResult', graphModule, 'graphModule')
    this.graphModule = graphModule
    this.modified = modified
  }
}

/** A pass as a class, as in PyTorch: override `call`, and `requires` and `ensures` for checks before and after it. */
export abstract class PassBase {
  /** Throws if the module does not meet the requirements of the pass. */
  requires(_gm: GraphModule): void {}

  abstract call(gm: GraphModule): PassResult

  /** Throws if the pass did not do what it should. */
  ensures(_gm: GraphModule): void {}

  /** Runs the pass with its checks. */
  run(gm: GraphModule): PassResult {
    checkGraphModule('PassBase.run', gm)
    this.requires(gm)
    const result = this.call(gm)
    this.ensures(result.graphModule)
    return result
  }
}

/**
 * A pass as a function. It changes the module in place and returns nothing, or whether it changed anything; or it returns a module, which counts as changed; or a PassResult, which says
 * both. Its name is the name of the pass.
 */
export type PassFunction = (gm: GraphModule) => GraphModule | PassResult | boolean | void

/** A subclass of Transformer: the pass replaces the module with the transformed one. */
export type TransformerClass = new (gm: GraphModule) => Transformer

/** Everything that {@link asPass} takes for a pass. */
export type AnyPass = Pass<GraphModule> | PassBase | PassFunction | TransformerClass

/** The name of a pass: that of its class if it is a class or an instance of PassBase. */
export function passName(pass: AnyPass): string {
  checkArgument(
    isFunction(pass) || isObject(pass),
    'asPass',
    'pass',
    'a pass: an object { name, run }, a function, a PassBase or a Transformer',
    pass,
  )
  return pass instanceof PassBase ? pass.constructor.name : pass.name
}

/** Makes a Pass of any kind of pass. Throws ArgumentError if a class is not a pass. */
export function asPass(pass: AnyPass, name: string = passName(pass)): Pass<GraphModule> {
  checkCount('asPass', arguments, 2)
  if (pass instanceof PassBase) return { name, run: (gm) => outcome(gm, pass.run(gm)) }
  if (isTransformer(pass)) return { name, run: (gm) => replaced(new pass(gm).transform()) }
  if (!isFunction(pass)) {
    checkArgument(
      isObject(pass) && isFunction(pass.run),
      'asPass',
      'pass',
      'a pass: an object { name, run }, a function, a PassBase or a Transformer',
      pass,
    )
    return pass
  }
  if (isClass(pass)) throw new ArgumentError(`asPass: the class ${pass.name} is not a pass; pass an instance of it, or a subclass of Transformer.`)
  return { name, run: (gm) => outcome(gm, pass(gm)) }
}

const isTransformer = (pass: AnyPass): pass is TransformerClass => isFunction(pass) && pass.prototype instanceof Transformer

type Outcome = ReturnType<Pass<GraphModule>['run']>

/** What a Pass returns for the result of another kind of pass. */
function outcome(gm: GraphModule, result: ReturnType<PassFunction>): Outcome {
  if (result instanceof PassResult) return replaced(result.graphModule, result.modified)
  // A function that returns the module that it got may have changed it.
  return result instanceof GraphModule ? replaced(result) : (result ?? true)
}

/** A pass that runs an Interpreter on these inputs, for what it notes in the meta of nodes. The graph does not change. */
export function interpreterPass(interpreter: new (gm: GraphModule) => Interpreter, inputs: readonly unknown[]): Pass<GraphModule> {
  checkCount('interpreterPass', arguments, 2)
  checkCallable('interpreterPass', 'interpreter', interpreter)
  checkArray('interpreterPass', 'inputs', inputs)
  const run = (gm: GraphModule): boolean => {
    new interpreter(gm).run(...inputs)
    return false
  }
  return { name: interpreter.name, run }
}

/** Makes a function return a PassResult, as a PassManager needs it. PyTorch's pass_result_wrapper. */
export function passResultWrapper(fn: PassFunction): (gm: GraphModule) => PassResult {
  checkCount('passResultWrapper', arguments, 1)
  checkCallable('passResultWrapper', 'fn', fn)
  const wrapped = (gm: GraphModule): PassResult => {
    const result = outcome(gm, fn(gm))
    return typeof result === 'boolean' ? new PassResult(gm, result) : new PassResult(result.value, result.changed)
  }
  return withName(wrapped, fn.name)
}

/** Generates the code again after a pass that changed the graph. */
const recompiling: PassObserver<GraphModule> = {
  after: (_pass, gm, { changed }) => {
    if (changed) gm.recompile()
  },
}

/** What events say of a module. */
export const graphFacts: PassFacts<GraphModule> = { nodes: (gm) => gm.graph.nodes, text: (gm) => String(gm.graph) }

/**
 * Runs passes over a module in order, and recompiles it after each pass that changed something. Where verification is on (`verify`, or setVerification), lints the
 * graph after each pass. Throws PassError before a pass whose `requires` have not run, and after one that left a graph that is not well formed. Observers see each
 * pass before and after it ran. Throws ArgumentError if `gm` is no GraphModule.
 *
 *     const { value, changed } = runPasses([deadCode, cse, fuse], gm)
 */
export function runPasses(passes: readonly AnyPass[], gm: GraphModule, options: RunPassesOptions<GraphModule> = {}): PassesResult<GraphModule> {
  checkCount('runPasses', arguments, 3)
  checkGraphModule('runPasses', gm)
  checkOptions('runPasses', options, { observers: true, verify: true, done: true })
  const { observers = [], verify = isVerifying() } = options
  const lint = (value: GraphModule): void => value.graph.lint()
  return run(
    passes.map((pass) => asPass(pass)),
    gm,
    { ...options, observers: [recompiling, ...observers], verify: verify === true ? lint : verify },
    graphFacts,
  )
}
