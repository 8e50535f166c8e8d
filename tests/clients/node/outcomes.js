// How a scenario ends when it doesn't pass.

/** The broker didn't do what the feature needs. */
export class Missing extends Error {}

/** The client has no such feature. */
export class NotInClient extends Error {}

export function require(holds, missing) {
  if (!holds) throw new Missing(missing)
}
