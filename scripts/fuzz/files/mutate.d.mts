import type { Dice } from './dice.mjs'
export function toEntries(value: unknown): unknown
export function toText(value: unknown): string
export function mutateValue(dice: Dice, value: unknown): unknown
export function mutateBytes(dice: Dice, bytes: Uint8Array): Uint8Array<ArrayBuffer>
