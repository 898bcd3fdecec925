// Fingers and mouse on the canvas: dragging, pinching, the wheel, and clicks.

/** What pointers do. Positions are in pixels from the top left corner of the canvas. */
export interface PointerActions {
  /** Moves the picture. */
  readonly drag: (dx: number, dy: number) => void
  /** Enlarges the picture around a point. */
  readonly zoom: (factor: number, x: number, y: number) => void
  readonly click: (x: number, y: number) => void
  readonly hover: (x: number, y: number) => void
}

/** A click may move this far. */
const STILL = 4

export function listen(canvas: HTMLElement, actions: PointerActions): void {
  const pointers = new Map<number, { x: number; y: number }>()
  let moved = false
  const at = (event: MouseEvent): { readonly x: number; readonly y: number } => {
    const box = canvas.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top }
  }
  /** The middle of the fingers, and their distance. */
  const grip = (): { readonly x: number; readonly y: number; readonly spread: number } => {
    const [a = { x: 0, y: 0 }, b = a] = [...pointers.values()]
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, spread: Math.hypot(a.x - b.x, a.y - b.y) }
  }
  canvas.addEventListener('pointerdown', (event) => {
    if (pointers.size === 2 || (event.pointerType === 'mouse' && event.button !== 0)) return
    if (pointers.size === 0) moved = false
    pointers.set(event.pointerId, at(event))
    if (pointers.size === 2) moved = true
    canvas.setPointerCapture(event.pointerId)
  })
  canvas.addEventListener('pointermove', (event) => {
    const now = at(event)
    const pointer = pointers.get(event.pointerId)
    if (pointer === undefined) {
      actions.hover(now.x, now.y)
      return
    }
    if (!moved && Math.hypot(now.x - pointer.x, now.y - pointer.y) < STILL) return
    moved = true
    canvas.classList.add('dragging')
    const before = grip()
    pointers.set(event.pointerId, now)
    const after = grip()
    actions.drag(after.x - before.x, after.y - before.y)
    if (before.spread > 0 && after.spread > 0) actions.zoom(after.spread / before.spread, after.x, after.y)
  })
  const release = (event: PointerEvent): void => {
    const wasDown = pointers.delete(event.pointerId)
    if (pointers.size > 0) return
    canvas.classList.remove('dragging')
    const { x, y } = at(event)
    if (wasDown && !moved && event.type === 'pointerup') actions.click(x, y)
  }
  canvas.addEventListener('pointerup', release)
  canvas.addEventListener('pointercancel', release)
  canvas.addEventListener(
    'wheel',
    (event) => {
      // In a page around this one, the wheel alone scrolls that page.
      if (window.parent !== window && !event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      const { x, y } = at(event)
      // A line of the wheel is about 16 pixels, a page about 400. With Shift the wheel moves sideways.
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? 400 : 1
      if (event.shiftKey) actions.drag(-(event.deltaX + event.deltaY) * unit, 0)
      else actions.zoom(Math.exp(-Math.max(-400, Math.min(400, event.deltaY * unit)) * (event.ctrlKey ? 0.01 : 0.0015)), x, y)
    },
    { passive: false },
  )
}
