// A program that symbolic tracing cannot follow: the error shows the user's line and says what to do.
import { TensorfxError } from '../errors/index.ts'
import { captureStack, codeFrame } from '../provenance/index.ts'
import type { Frame } from '../provenance/index.ts'

const HELP = `What to do:
  - a branch on a value: write both sides as data (torch.where, torch.cond), or make the condition an argument and trace with concreteArgs
  - a part that cannot be traced: put it into a module and make it a leaf (Tracer.isLeafModule), or wrap the function with fx.wrap
  - if the program only has to run fast: use compile(), which runs your code and handles such reads as graph breaks`

/** Symbolic tracing met something that it cannot record; PyTorch's torch.fx.proxy.TraceError. */
export class TraceError extends TensorfxError {
  /** Where in the user's program. */
  readonly frame: Frame | undefined

  /** `at`: where in the user's program; by default the place that is running now. */
  constructor(what: string, help: string = HELP, at: Frame | null = captureStack(undefined).userFrame ?? null) {
    const frame = at ?? undefined
    const code = frame === undefined ? null : codeFrame(frame)
    const where = frame === undefined ? '' : `\n  at ${frame.fn} (${frame.file}:${frame.line}:${frame.column})${code === null ? '' : `\n\n${code}\n`}`
    super('TFX_TRACE', `${what}${where}\n${help}`)
    this.frame = frame
  }
}
