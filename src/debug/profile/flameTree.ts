// The events of a profile as a tree of frames, for flame graphs: calls of the same name in the same place are one frame.
import type { ProfileEvent, ProfileKind } from './event.ts'

/** A frame: what ran in one place of the program. Sums over all calls and runs. */
export interface FlameFrame {
  readonly name: string
  /** `backward` for the frame that holds the backward passes. */
  readonly kind: ProfileKind | 'backward'
  /** Milliseconds, with what is inside. */
  readonly time: number
  readonly calls: number
  /** With what is inside. */
  readonly flops: number
  readonly bytes: number
  readonly children: readonly FlameFrame[]
}

class Frame implements FlameFrame {
  readonly name: string
  readonly kind: FlameFrame['kind']
  time = 0
  calls = 0
  flops = 0
  bytes = 0
  readonly #inside = new Map<string, Frame>()

  constructor(name: string, kind: FlameFrame['kind']) {
    this.name = name
    this.kind = kind
  }

  get children(): readonly Frame[] {
    return [...this.#inside.values()]
  }

  child(name: string, kind: FlameFrame['kind']): Frame {
    const key = `${kind} ${name}`
    let frame = this.#inside.get(key)
    if (frame === undefined) this.#inside.set(key, (frame = new Frame(name, kind)))
    return frame
  }
}

/** The outermost frames, in the order in which they first ran. What a backward pass computes is in one frame, by the modules whose forward it differentiates. */
export function flameTree(events: readonly ProfileEvent[]): readonly FlameFrame[] {
  const root = new Frame('', 'backward')
  const paths: (readonly Frame[])[] = []
  // A kernel comes after what ran inside of it, so frames are looked up when they are needed.
  const pathOf = (position: number): readonly Frame[] => {
    const known = paths[position]
    if (known !== undefined) return known
    const event = events[position]
    if (event === undefined) return []
    const above = event.parent === null ? outerFrames(root, event) : pathOf(event.parent)
    const own = (above.at(-1) ?? root).child(event.kind === 'kernel' ? kernelName(event) : event.name, event.kind)
    return (paths[position] = [...above, own])
  }
  events.forEach(({ parent, start, end, flops, bytes }, position) => {
    const path = pathOf(position)
    const own = path.at(-1)
    if (own === undefined) return
    own.time += end - start
    own.calls++
    // The frames that stand for no event have the time of what is inside.
    if (parent === null) for (const frame of path.slice(0, -1)) frame.time += end - start
    for (const frame of path) {
      frame.flops += flops
      frame.bytes += bytes
    }
  })
  return root.children
}

/** The frames around an event that nothing is around: none in a forward. */
function outerFrames(root: Frame, { backward, module }: ProfileEvent): readonly Frame[] {
  if (backward === null) return []
  const all = root.child('backward', 'backward')
  return module === null ? [all] : [all, all.child(module, 'module')]
}

/** A kernel by the nodes that it computes, which say more than its name. */
function kernelName({ name, nodes }: ProfileEvent): string {
  const most = 6
  return nodes.length === 0 ? name : `${nodes.slice(0, most).join(' ')}${nodes.length > most ? ` … (${nodes.length} nodes)` : ''}`
}
