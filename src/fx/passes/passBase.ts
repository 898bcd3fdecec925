// What a pass is and what it returns. PyTorch's torch.fx.passes.infra.pass_base.
import { ArgumentError } from '../../errors/index.ts'
import { GraphModule } from '../graphModule.ts'

/** A pass' result: the module (the same one, changed, or another) and whether anything changed. */
export class PassResult {
  readonly graphModule: GraphModule
  readonly modified: boolean

  constructor(graphModule: GraphModule, modified: boolean) {
    if (!(graphModule instanceof GraphModule)) throw new ArgumentError('PassResult: the first argument must be a GraphModule.')
    this.graphModule = graphModule
    this.modified = modified
  }
}

/** A pass as a function; it is called by its name in messages. */
export type Pass = (gm: GraphModule) => PassResult

/** A pass as a class: override `call`, and `requires` and `ensures` for checks before and after it. */
export abstract class PassBase {
  /** Throws when the graph is not what the pass needs. */
  requires(_gm: GraphModule): void {}

  abstract call(gm: GraphModule): PassResult

  /** Throws when the pass has left something undone. */
  ensures(_gm: GraphModule): void {}

  /** Runs the pass with its checks. */
  run(gm: GraphModule): PassResult {
    this.requires(gm)
    const result = this.call(gm)
    this.ensures(result.graphModule)
    return result
  }
}

/** Makes a pass of a function that returns nothing (it changed the module), a GraphModule, or a PassResult. PyTorch's pass_result_wrapper. */
export function passResultWrapper(fn: (gm: GraphModule) => GraphModule | PassResult | void): Pass {
  const wrapped: Pass = (gm) => {
    const result = fn(gm)
    return result instanceof PassResult ? result : new PassResult(result ?? gm, true)
  }
  return Object.defineProperty(wrapped, 'name', { value: fn.name })
}
