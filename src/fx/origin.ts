// Where a node comes from in the user's program: the innermost frame of its recorded stack, whether captured here or read from PyTorch's text.
import { CapturedStack, sourceLine } from '../provenance/index.ts'
import type { Frame } from '../provenance/index.ts'
import type { Node } from './node.ts'

/** The user's innermost frame of a node, or null when none is known. */
export function originOf(node: Node): Frame | null {
  const trace = node.stackTrace
  if (trace instanceof CapturedStack) return trace.userFrame ?? null
  if (typeof trace !== 'string') return null
  const last = lastFrame(trace)
  return last === null ? null : { file: last[1] as string, line: Number(last[2]), column: 1, fn: last[3] as string }
}

/** `model.ts:12 in Net.forward`: where a traced function stands, as the stacks of the nodes that it made tell; null when they tell nothing. */
export function placeOf(nodes: Iterable<Node>, functionName: string): string | null {
  for (const node of nodes) {
    const trace = node.op === 'placeholder' || node.op === 'output' ? null : node.stackTrace
    if (!(trace instanceof CapturedStack) || trace.userFrame === undefined) continue
    const { file, line, fn } = trace.frames.find((frame) => frame.fn === functionName) ?? trace.userFrame
    return `${file}:${line} in ${fn}`
  }
  return null
}

/** The source line of a node's innermost frame, without indentation; '' when it cannot be read. */
export function originCode(node: Node): string {
  const trace = node.stackTrace
  if (typeof trace === 'string') return lastFrame(trace)?.[4]?.trim() ?? ''
  const frame = originOf(node)
  return frame === null ? '' : (sourceLine(frame)?.trim() ?? '')
}

/** The path of the innermost module that was being called when the node was recorded, '' for the root, null when unknown. */
export function modulePath(node: Node): string | null {
  const stack = node.meta['nn_module_stack']
  return stack instanceof Map && stack.size > 0 ? String([...stack.keys()].at(-1)) : null
}

/** `layer1.0 (BasicBlock)`: the innermost module that was being called when the node was recorded; null for the root, and when unknown. */
export function moduleText(node: Node): string | null {
  const stack = node.meta['nn_module_stack']
  const innermost: unknown = stack instanceof Map ? [...stack.values()].at(-1) : undefined
  if (!Array.isArray(innermost) || innermost[0] === '') return null
  const type: unknown = innermost[1]
  return `${String(innermost[0])} (${typeof type === 'function' ? type.name : String(type)})`
}

function lastFrame(text: string): RegExpMatchArray | null {
  return [...text.matchAll(/File "([^"]*)", line (\d+), in (.*)\n?(.*)/g)].at(-1) ?? null
}
