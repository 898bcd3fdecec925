// Elements of the page.

type Child = Node | string | null | readonly Child[]

/** Makes an element. Attributes that are null are left out; null is no child. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | null>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value)
  made.append(...flat(children))
  return made
}

const flat = (children: readonly Child[]): (Node | string)[] =>
  children.flatMap((child) => (child === null ? [] : isList(child) ? flat(child) : [child]))
const isList = (child: Child): child is readonly Child[] => Array.isArray(child)

/** The element of the page with an id, which is of a class. */
export function byId<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.querySelector(`#${id}`)
  if (!(found instanceof type)) throw new Error(`The page has no ${type.name} '#${id}'.`)
  return found
}

/** Calls `act` when the element is clicked. */
export function onClick(id: string, act: () => void): void {
  byId(id, HTMLElement).addEventListener('click', act)
}
