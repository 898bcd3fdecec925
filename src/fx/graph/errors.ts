// The errors that graphs and tracing throw.
import { TensorfxError } from '../../errors/index.ts'
import { captureStack, codeFrame } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'

/**
 * An edit of a graph that is not allowed, or a graph that is not well formed.
 *
 * Fix: make the edit that the message suggests: insert a node before its users, replace all uses before erasing it. `graph.lint()` finds the first bad node.
 */
export class GraphError extends TensorfxError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('TFX_GRAPH', message, options)
  }
}

const HELP = `What to do:
  - a branch on a value: write both sides as data (torch.where, torch.cond), or make the condition an argument and trace with concreteArgs
  - a part that cannot be traced: put it into a module and make that a leaf (Tracer.isLeafModule), or wrap the function with fx.wrap
  - if all you need is speed: use compile(), which runs your code and handles such reads as graph breaks`

/**
 * The program did something that symbolic tracing cannot record; PyTorch's torch.fx.proxy.TraceError.
 *
 * Fix: write the branch as data (`torch.where`, `torch.cond`), fix the value with `concreteArgs`, or make the part a leaf (`fx.wrap`, `Tracer.isLeafModule`).
 */
export class TraceError extends TensorfxError {
  /** Where in the user's program it happened; undefined if unknown. */
  readonly frame: Frame | undefined

  /** `at` is where in the user's program it happened; by default, where the program is now. */
  constructor(what: string, help: string = HELP, at: Frame | null = captureStack(undefined).userFrame ?? null) {
    const frame = at ?? undefined
    const code = frame === undefined ? null : codeFrame(frame)
    const where = frame === undefined ? '' : `\n  at ${frame.fn} (${frame.file}:${frame.line}:${frame.column})${code === null ? '' : `\n\n${code}\n`}`
    super('TFX_TRACE', `${what}${where}\n${help}`)
    this.frame = frame
  }
}
