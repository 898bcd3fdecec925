// The errors that graphs and tracing throw, and the check of what a node calls.
import { TensorfxError } from '../../errors/index.ts'
import { isFunction, isModule, isObject, kindOf, targetInfo, valueText } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
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

/** What a node does; PyTorch's opcodes. */
export type Opcode = 'placeholder' | 'get_attr' | 'call_function' | 'call_module' | 'call_method' | 'output'
export const OPCODES: ReadonlySet<string> = new Set<Opcode>(['placeholder', 'get_attr', 'call_function', 'call_module', 'call_method', 'output'])

/** The qualified name of a registered function, else the function's own name; for other targets the target itself. */
export function targetText(target: TargetFunction | string): string {
  if (typeof target === 'string') return target
  return targetInfo(target)?.name ?? (target.name === '' ? '<anonymous>' : target.name)
}

/** Objects need not be convertible to a text. */
const shownValue = (value: unknown): string => (isObject(value) ? valueText(value) : String(value))

/** Throws GraphError unless a node with this opcode can have this target. */
export function checkTarget(graph: unknown, name: string, op: Opcode, target: TargetFunction | string): void {
  if (!OPCODES.has(op)) throw new GraphError(`op '${shownValue(op)}' is not in the legal ops: ${[...OPCODES].join(', ')}`)
  if (isModule(target))
    throw new GraphError(
      `Node '${name}': the target is a module, ${kindOf(target)}; add the module to the GraphModule and call it by its path: graph.callModule('path', args).`,
    )
  const expected = op === 'call_function' ? 'function' : 'string'
  if (typeof target === expected) return
  const shown = isFunction(target) ? targetText(target) : shownValue(target)
  throw new GraphError(`Node [graph = ${String(graph)}, name = '${name}'] target ${shown} has type ${typeof target} but a ${expected} is expected`)
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
