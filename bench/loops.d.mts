/** What a loop leaves behind, and its step. */
export interface Made {
  readonly step: (i: number) => unknown
  readonly state: () => readonly unknown[]
}

export interface Loop {
  readonly name: string
  readonly grows?: boolean
  readonly make: (c: <F extends (...args: never[]) => unknown>(fn: F) => F) => Made
}

export const loops: readonly Loop[]
export function compiled(loop: Loop, options?: object): Made & { graphs(): number }
