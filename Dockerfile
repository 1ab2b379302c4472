FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages packages
RUN npm ci
COPY tsconfig.json ./
COPY scripts/bundle.mjs scripts/client-package.mjs scripts/put-files.mjs scripts/wire-types.mjs scripts/
COPY src src
COPY workers workers
RUN npm run build && npm prune --omit=dev

FROM node:22-slim
ENV NODE_ENV=production SERVICE_HOST=0.0.0.0 SERVICE_PORT=8787 SERVICE_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/packages/client packages/client
COPY LICENSE README.md ./
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8787
# Exec form, so that SIGTERM reaches the server and it can finish what is in flight.
CMD ["node", "dist/program/strandfast.js", "serve"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.SERVICE_PORT}/healthz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
