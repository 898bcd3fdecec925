export const models: unknown
export const Block: unknown
export const UnitModule: unknown
export function init(model: unknown): unknown
