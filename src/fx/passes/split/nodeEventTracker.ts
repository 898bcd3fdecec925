// NodeEventTracker: why the splitter put each node where it is. PyTorch's torch.fx.passes.splitter_base.
import { checkCount } from '../../../protocol/index.ts'
import { ArgumentError } from '../../../errors/index.ts'
import type { Node } from '../../graph/node.ts'

/** Something that was decided about a node. `cause` is the node that it follows from, if any. */
interface NodeEvent {
  readonly node: Node
  readonly text: string
  readonly cause: Node | null
}

const eventText = ({ node, text, cause }: NodeEvent): string => `${node.name}: ${text} ${cause === null ? '#' : cause.name}`

/** Records what is decided about nodes and why. PyTorch's NodeEventTracker. */
export class NodeEventTracker {
  readonly #events = new Map<string, NodeEvent[]>()
  readonly #print: (line: string) => void

  /** `print` gets the lines of `printNode` and `printAll`; default console.log. */
  constructor(print: (line: string) => void = (line) => console.log(line)) {
    checkCount('NodeEventTracker', arguments, 1)
    this.#print = print
  }

  /** Adds an event. `cause` is the node that it follows from. */
  add(node: Node, text: string, cause: Node | null = null): void {
    const events = this.#events.get(node.name) ?? []
    events.push({ node, text, cause })
    this.#events.set(node.name, events)
  }

  /**
   * Prints the events of a node, each with `tab` before it. With `recursive`, the events of its cause follow, indented.
   * @throws ArgumentError if there is no event of the node.
   */
  printNode(name: string, options: { readonly recursive?: boolean; readonly tab?: string } = {}): void {
    if (!this.#events.has(name)) throw new ArgumentError(`printNode: name must be that of a node with events, got '${name}'.`)
    const { recursive = false, tab = '' } = options
    const stack: [event: NodeEvent, tab: string, above: ReadonlySet<string>][] = []
    const push = (node: string, indent: string, above: ReadonlySet<string>): void => {
      for (const event of (this.#events.get(node) ?? []).toReversed()) stack.push([event, indent, above])
    }
    push(name, tab, new Set([name]))
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [event, indent, above] = next
      this.#print(indent + eventText(event))
      const { cause } = event
      if (recursive && cause !== null && !above.has(cause.name)) push(cause.name, `| ${indent}`, new Set([...above, cause.name]))
    }
  }

  /** Prints the events of all nodes. */
  printAll(): void {
    for (const name of this.#events.keys()) {
      this.#print(`Node: ${name}:`)
      this.printNode(name, { recursive: false, tab: '  ' })
    }
  }

  /** The events as text, by the names of nodes. PyTorch's to_dict. */
  toDict(): Record<string, string[]> {
    return Object.fromEntries([...this.#events].map(([name, events]) => [name, events.map(eventText)]))
  }
}
