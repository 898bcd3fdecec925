// A part of a training whose state a checkpoint holds.

/** What has a state: a module, an optimizer, a schedule, a GradScaler, a DataLoader, or an object of your own. */
export interface HasState {
  stateDict(): unknown
  loadStateDict(state: never): unknown
}

/** A part: how to read and set its state. */
export interface Part {
  /** `optimizer`, `model.encoder` */
  readonly name: string
  read(): unknown
  load(state: unknown): void
}
